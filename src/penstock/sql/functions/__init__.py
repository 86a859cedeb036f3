"""The functions of the language: scalar, aggregate and table functions, built in or of a user.

A user's file imports the decorators from here: `from penstock.sql.functions import udf`.
"""

from penstock.sql.functions.user.decorators import udaf, udf, udtf

__all__ = ["udaf", "udf", "udtf"]
