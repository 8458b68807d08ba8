"""The proof on the hardware: a server booted from a build, climbed, loaded and measured."""
