"""The configuration: one TOML file, endpoints and defaults. Unknown keys are refused by name.

Precedence: command line over ``BISECTOR_…`` over this file over the default. The sections named after commands hold
defaults of their options; click applies them, so each option is described in one place only.
"""
