"""What every request goes through, from the outside to the inside. All of it is plain ASGI: streams stay streams."""
