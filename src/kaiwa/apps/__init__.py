"""The app framework: a few Python functions become a chat in the browser."""
