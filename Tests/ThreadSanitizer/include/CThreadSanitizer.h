// Nothing to call: see MutexOrder.c.
