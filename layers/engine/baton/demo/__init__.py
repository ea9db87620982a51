"""The demo: twenty evenings out, one that begins with words, killed workers, an approval, and a rollback.

`scenario` runs the sagas, `evidence` collects data, `figures` computes from it, `promises` checks it,
`report` shows it, in this reading order. `failover` has a dinner for each fault of a service.
"""
