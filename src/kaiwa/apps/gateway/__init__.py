"""The app on the network: HTTP, WebSocket, and nothing that knows what an app does."""
