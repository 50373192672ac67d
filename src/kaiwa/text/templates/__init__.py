"""Messages to the text that a model was trained on."""
