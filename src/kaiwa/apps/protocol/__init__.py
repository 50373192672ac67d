"""The contract between an app and its page, version by version.

`records` are the things, `events` what happens to them in a chat, `frames` what the server sends, `commands` what the
page asks for. `python -m kaiwa.apps.protocol` prints the same as TypeScript; with `--json`, as JSON schema.

All addresses are relative to the page, so that an app may live below any path:

    GET  api/auth                       AuthInfo
    POST api/login                      Login → AuthInfo; sets a cookie
    POST api/logout
    WS   api/socket                     commands as JSON text, one a message; frames come back the same way
    GET  api/events?connection=ID       frames as server-sent events, where there is no WebSocket; the page makes the ID
    POST api/commands?connection=ID     one command; also for what a WebSocket would be too small for
    PUT  api/files/CHAT_ID/FILE_ID?name=NAME    the file's bytes as body, its MIME type as Content-Type → File
    GET  files/FILE_ID                  an element's or an uploaded file's bytes
    GET  api/health                     {"status": "ok"}

Every other address without a dot in its last part is the page itself: `chat/ID` shows a chat. Errors of HTTP are a
`Problem` as JSON. A connection begins with `hello` and gets `welcome`; then `new_chat` or `open_chat`.

A page draws a chat by applying its events in order. `text_added` appends to the part `part` of a message;
`message_finished` and `step_updated` close what grew. When the connection is lost, the page connects again, says
`hello`, and opens its chat `since` the `offset` of the last `events` it has applied; commands that were not answered
it sends again.
"""
