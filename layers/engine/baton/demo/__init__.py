"""The demo: twenty evenings out, two killed workers, one approval, one change of mind, and the figures afterwards.

`scenario` is what happens, `approver` the person who is asked, `evidence` collects what was left behind, `figures`
computes from it, `promises` judges, `report` and `progress` show. Reading order: scenario, figures, promises.
"""
