"""What an app says and asks: messages, steps, elements, questions, settings."""
