"""An app at work: its chats, sessions, runs and pages. No network in here."""
