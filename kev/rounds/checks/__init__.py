"""The rules of a round's spec, a module per part of it. Each check notes what it finds and raises nothing."""
