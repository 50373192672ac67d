"""Where chats are kept: tables, migrations, and the files that people upload."""
