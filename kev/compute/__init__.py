"""Where work runs: one asynchronous protocol, and its implementation over the public API of `modal`.

Importing this package, or any module in it, loads no `modal`; that happens when `ModalCompute` connects.
"""
