"""Pipelines: a Python file of data frame functions, run and watched by a supervisor.

    from penstock.pipelines import Table, Topic, pipeline

    @pipeline(inputs={"orders": Topic("orders", value="shop STRING, cents LONG")},
              output=Topic("revenue", key="shop"), mode="update")
    def revenue(orders):
        return orders.groupBy("shop").sum("cents")

`penstock pipeline run FILE` runs it. Declarations cost nothing to import; Spark is loaded by what
runs them (`queries`, `supervisor`).
"""

from penstock.pipelines.declaration import Pipeline, Table, Topic, pipeline

__all__ = ["Pipeline", "Table", "Topic", "pipeline"]
