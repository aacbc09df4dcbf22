"""Flows that Telecine brings along. Each is made by a function of the options that its handlers need."""
