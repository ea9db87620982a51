"""Measurements that anyone can repeat: `make bench [BENCH=name]`. One file per bench; nothing is asserted but targets."""
