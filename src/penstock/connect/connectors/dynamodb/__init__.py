"""DynamoDB: tables, and their changes from DynamoDB Streams."""
