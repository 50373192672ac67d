"""Token ids in, next tokens out, on some hardware."""
