"""Clients are cheap to create because less is read and parsed for them, never because something else is."""

from __future__ import annotations

import gc

import pytest
from botocore.exceptions import UnknownServiceError
from botocore.loaders import Loader

from baton.adapters.aws import Aws, ServiceModels, later, without_garbage_collection

SERVICES = ("dynamodb", "lambda", "s3", "sns", "sqs")


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1", "paginators-1"])
def test_a_service_is_described_as_botocore_describes_it(service: str, kind: str) -> None:
    assert ServiceModels(*SERVICES).load_service_model(service, kind) == Loader().load_service_model(
        service, kind
    )


@pytest.mark.parametrize("name", ["endpoints", "partitions", "sdk-default-configuration", "_retry"])
def test_what_all_services_share_is_the_same_too(name: str) -> None:
    assert ServiceModels(*SERVICES).load_data(name) == Loader().load_data(name)


def test_a_service_without_users_is_not_known() -> None:
    with pytest.raises(UnknownServiceError):
        ServiceModels(*SERVICES).load_service_model("iam", "service-2")


def test_a_client_is_created_once() -> None:
    aws = Aws("http://127.0.0.1:1")
    assert aws.dynamodb is aws.dynamodb
    assert aws.dynamodb.meta.service_model.service_name == "dynamodb"


def test_a_client_for_later_is_created_by_its_first_use_and_is_the_same_client() -> None:
    aws, asked = Aws("http://127.0.0.1:1"), []

    def create() -> object:
        asked.append("s3")
        return aws.s3

    client = later(create)
    assert asked == []
    for _ in range(2):
        assert client.meta is aws.s3.meta  # type: ignore[attr-defined]  # it stands for a client
    assert asked == ["s3"]


def test_a_request_names_baton_as_its_sender() -> None:
    sent: list[bytes] = []
    client = Aws("http://127.0.0.1:1").dynamodb

    def refuse(request: object, **_: object) -> None:
        sent.append(request.headers["User-Agent"])  # type: ignore[attr-defined]  # botocore's AWSRequest
        raise InterruptedError

    client.meta.events.register("before-send", refuse)
    with pytest.raises(InterruptedError):
        client.list_tables()
    assert sent[0].startswith(b"Baton Botocore/")


def test_the_collector_is_as_it_was_afterwards() -> None:
    with without_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), without_garbage_collection():
        raise KeyError
    assert gc.isenabled()
    gc.disable()
    try:
        with without_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
