"""The demo: twenty evenings out and one that begins with words, killed workers,
an approval, a change of mind, an evening that falls through, and figures.

`scenario` is what happens, `approver` the person who is asked, `guest` the one who began with words,
`evidence` collects what was left behind, `figures`
computes from it, `promises` judges, `report` and `progress` show. Reading order: scenario, figures, promises.

`failover` is another run: a dinner for each fault of a service; `failover_report` shows it.
"""
