"""The demo: twenty evenings out, one that begins with words, killed workers, an approval, a changed wish, a
rollback, and figures.

`scenario` runs the sagas, `approver` is the person who is asked, `guest` the one who began with words.
`evidence` collects the recorded data, `figures` computes from it, `promises` checks it, `report` and
`progress` show it. Reading order: scenario, figures, promises.

`failover` is another run, with a dinner for each fault of a service. `failover_report` shows it.
"""
