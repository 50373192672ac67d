"""Files that people send, and elements that pages load."""

from __future__ import annotations

from pathlib import Path

import kaiwa as kw
from app_wire import Wire, http, served
from kaiwa.apps.protocol.records import File


def reader(**uploads: int) -> kw.App:
    app = kw.App("Reader", uploads=kw.Uploads(**uploads))  # type: ignore[arg-type]

    @app.on_message
    async def answer(message: kw.Message) -> None:
        for element in message.elements:
            text = Path(str(element.path)).read_text()
            shown = kw.Text("copy", content=text.upper())
            await kw.Message(f"{element.name} {element.mime} {text}", elements=[shown]).send()

    return app


def test_a_file_goes_along_with_a_message(tmp_path: Path) -> None:
    with served(reader(), tmp_path) as port, Wire(port) as page, http(port) as client:
        page.hello().new_chat()
        address = f"/api/files/{page.chat_id}/f1?name=no%2Ftes.txt"
        sent = client.put(address, content=b"read me", headers={"Content-Type": "text/plain"})
        assert (
            sent.json() == File(id="f1", name="no_tes.txt", mime="text/plain", num_bytes=7, url="files/f1").model_dump()
        )
        page.say("", file_ids=["f1"])
        page.until_idle()
        assert page.texts[-1] == "no_tes.txt text/plain read me"
        element = next(one for one in page.state.elements.values() if one.name == "copy")
        shown = client.get(f"/{element.url}")
        assert (shown.text, shown.headers["content-type"]) == ("READ ME", "text/plain; charset=utf-8")
        assert "sandbox" in shown.headers["content-security-policy"]
        assert "immutable" in shown.headers["cache-control"]


def test_what_a_browser_could_run_is_only_to_be_saved(tmp_path: Path) -> None:
    with served(reader(), tmp_path) as port, Wire(port) as page, http(port) as client:
        page.hello().new_chat()
        for number, mime in enumerate(("text/html", "image/svg+xml", "application/xhtml+xml", "no type")):
            address = f"/api/files/{page.chat_id}/f{number}?name=x"
            client.put(address, content=b"<script>alert(1)</script>", headers={"Content-Type": mime})
            got = client.get(f"/files/f{number}")
            assert got.headers["content-disposition"].startswith("attachment")
            assert "sandbox" in got.headers["content-security-policy"]


def test_a_file_that_is_too_large_is_refused_while_it_comes(tmp_path: Path) -> None:
    with served(reader(max_bytes=1000), tmp_path) as port, Wire(port) as page, http(port) as client:
        page.hello().new_chat()
        answer = client.put(f"/api/files/{page.chat_id}/f1", content=(b"x" * 600 for _ in range(3)))
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert list((tmp_path / "files" / page.chat_id).iterdir()) == []


def test_nobody_sends_files_to_what_is_not_theirs(tmp_path: Path) -> None:
    with served(reader(), tmp_path) as port, Wire(port) as page, http(port) as client:
        page.hello().new_chat()
        assert client.put("/api/files/elsewhere/f1", content=b"x").status_code == 404
        assert client.put(f"/api/files/{page.chat_id}/..%2Ff1", content=b"x").status_code == 405
        assert client.put(f"/api/files/{page.chat_id}/a.b", content=b"x").status_code == 400
        assert client.put(f"/api/files/{page.chat_id}/f1", content=b"x").status_code == 200
        assert client.put(f"/api/files/{page.chat_id}/f1", content=b"y").status_code == 409
        assert client.get("/files/none").status_code == 404
        assert page.ask("say", message_id="m", text="x", file_ids=["none"])["problem"]["code"] == "not_found"


def test_a_deleted_chat_takes_its_files_along(tmp_path: Path) -> None:
    with served(reader(), tmp_path) as port, Wire(port) as page, http(port) as client:
        page.hello().new_chat()
        client.put(f"/api/files/{page.chat_id}/f1", content=b"x")
        page.ask("delete_chat")
        assert client.get("/files/f1").status_code == 404
        assert list((tmp_path / "files").iterdir()) == []
