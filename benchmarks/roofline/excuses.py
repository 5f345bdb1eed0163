"""Predictions below a target of ./dev gpu, and stack frames, with what is known of them."""

KNOWN = {
}
