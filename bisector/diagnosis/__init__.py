"""What a log or a launch line says: why a server failed, and which of its flags are only workarounds."""
