"""The demo: twenty evenings out and one that an agent plans, killed workers, an approval, a change of mind, and figures.

`scenario` is what happens, `approver` the person who is asked, `evidence` collects what was left behind, `figures`
computes from it, `promises` judges, `report` and `progress` show. Reading order: scenario, figures, promises.
"""
