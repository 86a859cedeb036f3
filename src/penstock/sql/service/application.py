"""The service as one ASGI application."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from penstock.http.handlers import ASGIApp
from penstock.http.origins import OwnPages
from penstock.http.service import Guard, Served, service
from penstock.sql.asking.answering import StatementAnswers
from penstock.sql.asking.questions import Questions
from penstock.sql.running.server_group import ServerGroup
from penstock.sql.service.errors import generic_document, translate
from penstock.sql.service.info_routes import InfoRoutes
from penstock.sql.service.insert_routes import InsertRoutes
from penstock.sql.service.media import DELIMITED, JSON, KSQL_JSON
from penstock.sql.service.printing import TopicPrints
from penstock.sql.service.query_routes import QueryRoutes
from penstock.sql.service.settings import SqlConfig
from penstock.sql.service.socket_routes import SocketRoutes
from penstock.sql.service.statement_routes import StatementRoutes


def application(
    answers: StatementAnswers,
    questions: Questions,
    config: SqlConfig,
    cluster_id: Callable[[], str],
    threads: ThreadPoolExecutor,
    guard: Guard | None = None,
    *,
    servers: ServerGroup,
) -> ASGIApp:
    """All routes together."""
    prints = TopicPrints(topics=answers.topics, client=config.client)
    routes = [
        *InfoRoutes(answers.engine, config, cluster_id, threads, servers).routes(),
        *StatementRoutes(answers, threads).routes(),
        *QueryRoutes(questions, prints, threads).routes(),
        *SocketRoutes(questions, prints, threads).routes(),
        *InsertRoutes(answers, threads).routes(),
    ]
    served = Served(offered=[KSQL_JSON, JSON, DELIMITED], body_bytes_max=config.body_bytes_max)
    app = service(routes, served, document=generic_document, translate=translate, guard=guard)
    return OwnPages(app)
