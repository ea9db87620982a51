"""Calls of the HTTP API by subject, of which `Api` is made."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from baton.client import transport
from baton.client.exits import REFUSED, CommandFailed
from baton.client.transport import PAGE, Calls, Pages, new_key, path_of


class BreakerCalls(Calls):
    """Calls of an `Api` for circuit breakers."""

    def breakers(self) -> Pages:
        """Return all circuit breakers: `GET /breakers`, page by page."""
        return self._pages("/breakers", "breakers", {}, None, None)

    async def breaker(self, name: str) -> dict[str, Any]:
        """Return a circuit breaker: `GET /breakers/{name}`."""
        return await self._get(path_of("breakers", name), has="state")

    async def set_breaker(self, name: str, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Open or reset a circuit breaker: `POST /breakers/{name}/open` or `/reset`."""
        return await self._send(path_of("breakers", name, do), body, has="state")


class ClaimCalls(Calls):
    """Calls of an `Api` for claims of once-only effects."""

    async def claims_of(self, saga: str) -> list[dict[str, Any]]:
        """Return the claims of a saga, from all pages: `GET /sagas/{id}/claims`."""
        found: dict[str, dict[str, Any]] = {}
        after: int | None = 0
        while after is not None:
            page = await self._get_of(saga, "claims", query={"after": str(after)}, has="claims")
            found |= {claim["key"]: claim for claim in page["claims"]}
            after = page["next"]
        return list(found.values())

    async def find_claims(self, tool: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the claims of a tool's calls: `GET /claims`."""
        page = await self._get("/claims", {"tool": tool, **query}, has="claims")
        return list(page["claims"])

    async def effect_claim(self, key: str) -> dict[str, Any]:
        """Return a claim: `GET /claims/{key}`."""
        return await self._get(path_of("claims", key), has="status")

    async def free_claim(self, key: str, reason: str, *, force: bool = False) -> dict[str, Any]:
        """Free a claim: `POST /claims/{key}/free`. Repeating it changes nothing."""
        body = {"reason": reason, "force": force}
        return await self._send(path_of("claims", key, "free"), body, has="status")


class AliasCalls(Calls):
    """Calls of an `Api` for aliases of parameters."""

    async def aliases(self) -> list[dict[str, Any]]:
        """Return the aliases: `GET /aliases`."""
        return list((await self._get("/aliases", has="aliases"))["aliases"])

    async def decide_alias(
        self, tool: str, given: str, parameter: str, decision: str
    ) -> list[dict[str, Any]]:
        """Approve, reject or drop an alias, and return all: `POST /aliases`. Repeating it changes nothing."""
        body = {"tool": tool, "given": given, "parameter": parameter, "decision": decision}
        return list((await self._send("/aliases", body, has="aliases"))["aliases"])


_SUMMED = ("sagas", "input", "output", "usd")


class CostCalls(Calls):
    """Calls of an `Api` for costs, budgets and error budgets."""

    async def cost(self, saga: str) -> dict[str, Any]:
        """Return the cost of a saga: `GET /sagas/{id}/cost`."""
        return await self._get_of(saga, "cost", has="usd")

    async def costs(self, by: str, day: str | None, of: str = "") -> dict[str, Any]:
        """Return the costs of a day, with the sums of all pages: `GET /costs`."""
        query = {"by": by, **({"day": day} if day else {}), **({"of": of} if of else {})}
        page = await self._get("/costs", query, has="costs")
        sums, left_out = {row["key"]: row for row in page["costs"]}, list(page.get("left_out") or ())
        while page["next"] is not None:
            more = {**query, "day": page["day"], "cursor": page["next"]}
            page = await self._get("/costs", more, has="costs")
            left_out += page.get("left_out") or ()
            for row in page["costs"]:
                before = sums.setdefault(row["key"], {**row, **dict.fromkeys(_SUMMED, 0)})
                before.update({name: before[name] + row[name] for name in _SUMMED})
        costs = sorted(sums.values(), key=lambda row: (-row["usd"], row["key"]))
        return {"day": page["day"], "by": by, "costs": costs, **({"left_out": left_out} if of else {})}

    async def budget(self) -> dict[str, Any]:
        """Return the caller's budget of today: `GET /budget`."""
        return await self._get("/budget", has="spent_usd")

    async def error_budgets(self, day: str | None = None) -> list[dict[str, Any]]:
        """Return the error budgets of a day, from all pages: `GET /error-budgets`."""
        pages: list[dict[str, Any]] = []
        query = {"day": day} if day else {}
        while not pages or pages[-1]["next"] is not None:
            pages.append(await self._get("/error-budgets", query, has="workflows"))
            query = {"day": pages[0]["day"], "cursor": pages[-1]["next"]}
        return pages


_NAME = "dead-letters"


class LetterCalls(Calls):
    """Calls of an `Api` for dead letters."""

    def dead_letters(self, filters: Mapping[str, str], limit: int | None, cursor: str | None) -> Pages:
        """Return dead letters page by page: `GET /dead-letters`, as `sagas`."""
        return self._pages(path_of(_NAME), "dead_letters", filters, limit, cursor)

    async def dead_letter(self, letter: str) -> dict[str, Any]:
        """Return a dead letter: `GET /dead-letters/{id}`."""
        return await self._get(path_of(_NAME, letter), has="redrives")

    async def redrive(self, letter: str, *, force: bool = False) -> dict[str, Any]:
        """Call `POST /dead-letters/{id}/redrive`; repeated, it does nothing until the letter dies again."""
        return await self._send(path_of(_NAME, letter, "redrive"), {"force": force}, has="redrives")

    async def redrive_all(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Call `POST /dead-letters/redrive`, once: `next` of the answer continues it."""
        return await self._send(path_of(_NAME, "redrive"), wanted, has="matched")

    async def discard_all(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Call `POST /dead-letters/discard`, once: `next` of the answer continues it."""
        return await self._send(path_of(_NAME, "discard"), wanted, has="matched")

    async def discard(self, letter: str, reason: str) -> dict[str, Any]:
        """Call `POST /dead-letters/{id}/discard`; repeating it changes nothing."""
        return await self._send(path_of(_NAME, letter, "discard"), {"reason": reason}, has="redrives")


_ONE, _MANY = "application/cloudevents+json", "application/cloudevents-batch+json"


class EventCalls(Calls):
    """Calls of an `Api` for events from outside."""

    async def send_events(self, events: Any) -> dict[str, Any]:
        """Call `POST /events` with an event or a list. A repeated event has no effect."""
        kind = _MANY if isinstance(events, list) else _ONE
        text = json.dumps(events, ensure_ascii=False)
        answer = await self._transport.ask("POST", "/events", text=text, content_type=kind)
        return self._shaped(answer.document or {}, "events")


class PeopleCalls(Calls):
    """Calls of an `Api` for questions and incidents."""

    def questions(self, limit: int | None, cursor: str | None) -> Pages:
        """Return open questions page by page: `GET /questions`, as `sagas`."""
        return self._pages("/questions", "questions", {}, limit, cursor)

    async def questions_of(self, saga: str, limit: int, *, answered: bool = False) -> list[dict[str, Any]]:
        """Return the open or the answered questions of a saga: `GET /questions?saga=`."""
        query = {"limit": str(min(limit, PAGE))} | ({"answered": "true"} if answered else {})
        answer = await self._named(
            saga, lambda known: self._transport.ask("GET", "/questions", query={"saga": known, **query})
        )
        return list(self._shaped(answer.document or {}, "questions")["questions"])

    async def answer(self, saga: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Call `POST /sagas/{id}/answer`. Without a key, repeating the same answer counts once."""
        return await self._send_to(saga, "answer", body=body, key=key)

    async def claim(self, saga: str, ask: str, *, release: bool = False) -> dict[str, Any]:
        """Call `POST /sagas/{id}/claim`; with `release`, the question is for all of its audience again."""
        return await self._send_to(saga, "claim", body={"ask": ask, "release": release})

    async def remind(self, saga: str, ask: str) -> dict[str, Any]:
        """Notify the audience of a question again: `POST /sagas/{id}/remind`."""
        return await self._send_to(saga, "remind", body={"ask": ask})

    def incidents(self, filters: Mapping[str, str], limit: int | None, cursor: str | None) -> Pages:
        """Return incidents page by page: `GET /incidents`, as `sagas`."""
        return self._pages("/incidents", "incidents", filters, limit, cursor)

    async def incident(self, incident: str) -> dict[str, Any]:
        """Return an incident: `GET /incidents/{id}`."""
        return await self._get(path_of("incidents", incident), has="status")

    async def set_incident(self, incident: str, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Call `POST /incidents/{id}/acknowledge` and `resolve`; repeating it changes nothing."""
        return await self._send(path_of("incidents", incident, do), body)


EVENTS = 500
WAY = 1_000  # the whole log is read for every page
RUNS = MESSAGES = 200
FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.25, 2.0
"""Between two questions for the answer to a signal."""


class SagaCalls(Calls):
    """Calls of an `Api` for sagas."""

    async def start(
        self,
        workflow: str,
        given: Any,
        key: str | None = None,
        labels: Mapping[str, str] | None = None,
        correlation_key: str = "",
    ) -> dict[str, Any]:
        """Call `POST /sagas`. A workflow has one saga for a `correlation_key`, so no other key is sent."""
        body = {"workflow": workflow, "input": given, **({"labels": dict(labels)} if labels else {})}
        if correlation_key:
            return await self._send("/sagas", {**body, "correlation_key": correlation_key}, key=key or "")
        return await self._send("/sagas", body, key=key or new_key())

    async def intend(self, words: str, given: Any, key: str | None = None) -> dict[str, Any]:
        """Start the workflow for intentions with a person's words: `POST /intentions`."""
        return await self._send("/intentions", {"words": words, "input": given}, key=key or new_key())

    async def warm(self, tool: str, given: Any) -> dict[str, Any]:
        """Call a tool ahead of the steps that need its result: `POST /warm`."""
        return await self._send("/warm", {"tool": tool, "arguments": given})

    async def show(self, saga: str) -> dict[str, Any]:
        """Return the state of a saga: `GET /sagas/{id}`."""
        return await self._get_of(saga, has="status")

    async def show_changed(self, saga: str, etag: str) -> tuple[dict[str, Any] | None, str]:
        """Call `GET /sagas/{id}`. Return it if it differs from `etag`, else None; and the next ETag."""
        answer = await self._of(saga, "GET", etag=etag)
        return answer.document and self._shaped(answer.document, "status"), answer.etag

    async def events(
        self, saga: str, after: int | None = None, limit: int | None = None, lost: list[Any] | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the entries of a saga in order, at most `limit`. `lost` gets those that cannot be read."""
        async for page in self._parts_of(saga, "events", "entries", {}, EVENTS, after, limit):
            for entry in page["entries"]:
                yield entry
            (lost if lost is not None else []).extend(page.get("unreadable", ()))

    async def events_changed(
        self, saga: str, after: int, etag: str
    ) -> tuple[list[dict[str, Any]], str, bool]:
        """Return the entries of one page, none if unchanged, its ETag, and true if more follow."""
        query = {"limit": str(EVENTS), "after": str(after)}
        answer = await self._of(saga, "GET", "events", query=query, etag=etag)
        page = {"entries": []} if answer.document is None else self._shaped(answer.document, "entries")
        return page["entries"], answer.etag, page.get("next") is not None

    def sagas(self, filters: Mapping[str, str], limit: int | None, cursor: str | None) -> Pages:
        """Call `GET /sagas` page by page, at most `limit` sagas, each page with the cursor of the next."""
        return self._pages("/sagas", "sagas", filters, limit, cursor)

    async def value(self, saga: str, digest: str) -> Any:
        """Call `GET /sagas/{id}/values/{digest}`, with its parts joined."""
        page = await self._get_of(saga, "values", digest, has="ref")
        if page["part"] is None:
            return page["value"]
        parts = [page["part"]]
        while page["next"] is not None:
            query = {"after": str(page["next"])}
            page = await self._get_of(saga, "values", digest, query=query, has="ref")
            parts.append(page["part"])
        return json.loads("".join(parts))

    async def live(self, saga: str, after: int | None = None) -> dict[str, Any]:
        """Return the texts that models are writing for a saga: `GET /sagas/{id}/live`.
        With `after`, also those that have ended since.
        """
        query = None if after is None else {"after": str(after)}
        return await self._get_of(saga, "live", query=query, has="texts")

    def way(
        self, saga: str, after: int | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the path of a saga page by page, about `limit` steps."""
        return self._parts_of(saga, "explain", "steps", {}, WAY, after, limit)

    def steps(
        self, saga: str, kind: str = "", after: int | None = None, limit: int | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the attempts of a saga page by page, about `limit`: `GET /sagas/{id}/steps`."""
        return self._parts_of(saga, "steps", "steps", {"kind": kind} if kind else {}, RUNS, after, limit)

    async def _parts_of(
        self, saga: str, what: str, has: str, given: Any, most: int, after: int | None, limit: int | None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield pages of what a saga has, about `limit` in all."""
        left = limit
        while left is None or left > 0:
            query = {"limit": str(most if left is None else min(most, left)), **given}
            if after is not None:
                query["after"] = str(after)
            page = await self._get_of(saga, what, query=query, has=has)
            yield page
            after = page.get("next")
            if left is not None:
                left -= len(page[has])
            if after is None:
                return

    def states(self, saga: str, at: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Yield a saga as it was at a version, with its outputs page by page: `GET /sagas/{id}/state`."""
        return self._parts_of(saga, "state", "outputs", {"at": str(at)}, RUNS, None, None)

    async def compare(self, first: str, second: str, at: int = 0, to: int = 0) -> dict[str, Any]:
        """Return the differences of two sagas, or of two versions of one: `GET /sagas/{id}/diff/{second}`."""
        query = {"at": str(at), "to": str(to)}
        return await self._get_of(first, "diff", second, query=query, has="differences")

    def messages(self, saga: str, after: int | None = None) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages to a saga's agents and their answers: `GET /sagas/{id}/messages`."""
        return self._parts_of(saga, "messages", "messages", {}, MESSAGES, after, None)

    async def say(
        self, saga: str, text: str, key: str | None = None, *, to: str = "", ends: bool = False
    ) -> dict[str, Any]:
        """Send a message to an agent of a saga, or end its conversation: `POST /sagas/{id}/messages`."""
        body = {**({"ends": True} if ends else {"text": text}), **({"to": to} if to else {})}
        return await self._send_to(saga, "messages", body=body, key=key or new_key())

    async def explain(self, saga: str, node: str) -> dict[str, Any]:
        """Explain the state of a node: `GET /sagas/{id}/explain/{node}`."""
        return await self._get_of(saga, "explain", node, has="iterations")

    async def signal(
        self,
        saga: str,
        name: str,
        payload: Any,
        key: str | None = None,
        failure: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Call `POST /sagas/{id}/signals/{name}` with a payload or a failure (`code`, `message`)."""
        body = {"payload": payload} if failure is None else {"failure": dict(failure)}
        return await self._send_to(saga, "signals", name, body=body, key=key or new_key())

    async def update(
        self, saga: str, name: str, payload: Any, key: str | None = None, wait_s: float = 30
    ) -> dict[str, Any]:
        """Send a signal, and again with the same key until a function has answered it or `wait_s` are over.

        The `outcome` of the answer says which; `answer` is the function's.
        """
        sent, pause_s = await self.signal(saga, name, payload, key), FIRST_PAUSE_S
        while sent["outcome"] in ("waiting", "taken") and wait_s > 0:
            await transport.pause(min(pause_s, wait_s))
            wait_s, pause_s = wait_s - pause_s, min(2 * pause_s, _LONGEST_PAUSE_S)
            sent = await self.signal(saga, name, payload, sent["key"])
        return sent

    async def cancel(
        self, saga: str, reason: str, mode: str, grace_s: float | None = None, *, undo: bool = False
    ) -> dict[str, Any]:
        """Call `POST /sagas/{id}/cancel`; repeating it changes nothing."""
        body: dict[str, Any] = {"reason": reason, "mode": mode}
        if grace_s is not None:
            body["grace_s"] = grace_s
        if undo:
            body["undo"] = True
        return await self._send_to(saga, "cancel", body=body, key=new_key())

    async def fork(
        self, saga: str, version: int = 0, reason: str = "", key: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Continue a saga in a new branch: `POST /sagas/{id}/forks`. It begins at `version` of its log, or as
        `more` says: the further fields of the body.
        """
        body = {**({"version": version} if version else {}), "reason": reason, **more}
        return await self._send_to(saga, "forks", body=body, key=key or new_key())

    async def workflow_of(self, saga: str) -> dict[str, Any]:
        """Return the graph that a saga runs, with its document: `GET /sagas/{id}/workflow`."""
        return await self._get_of(saga, "workflow", has="nodes")

    async def patch(self, saga: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Change the graph of a saga: `POST /sagas/{id}/patches`."""
        return await self._send_to(saga, "patches", body=dict(body), key=key or new_key())

    async def rollback(self, saga: str, body: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Undo effects of a saga: `POST /sagas/{id}/rollback`."""
        return await self._send_to(saga, "rollback", body=dict(body), key=key or new_key())

    async def pause(self, saga: str, reason: str) -> dict[str, Any]:
        """Pause a saga: `POST /sagas/{id}/pause`."""
        return await self._send_to(saga, "pause", body={"reason": reason})

    async def retry(self, saga: str, key: str | None = None) -> dict[str, Any]:
        """Retry a failed saga from its failed step: `POST /sagas/{id}/retry`."""
        return await self._send_to(saga, "retry", body={}, key=key or new_key())

    async def steer(self, do: str, wanted: Mapping[str, Any], key: str | None = None) -> dict[str, Any]:
        """Pause, resume, cancel or retry many sagas, once: `POST /sagas/{do}`. `next` of the answer continues
        it.
        """
        return await self._send(path_of("sagas", do), wanted, key, has="matched")

    async def wake(self, saga: str) -> dict[str, Any]:
        """Have a worker look at a saga now: `POST /sagas/{id}/wake`."""
        return await self._send_to(saga, "wake", body={})

    async def resume(self, saga: str, budget_usd: str | None = None) -> dict[str, Any]:
        """Resume a parked or paused saga, or repair one: `POST /sagas/{id}/resume`."""
        body = {} if budget_usd is None else {"budget_usd": budget_usd}
        return await self._send_to(saga, "resume", body=body)


_SCHEDULE_NAME = "schedules"


class ScheduleCalls(Calls):
    """Calls of an `Api` for schedules."""

    def schedules(self) -> Pages:
        """Return all schedules: `GET /schedules`, page by page."""
        return self._pages(path_of(_SCHEDULE_NAME), "schedules", {}, None, None)

    async def schedule(self, name: str) -> dict[str, Any]:
        """Return a schedule: `GET /schedules/{name}`."""
        return await self._get(path_of(_SCHEDULE_NAME, name), has="state")

    async def diagnosis(self, saga: str, *, repair: bool = False) -> dict[str, Any]:
        """Return what is wrong with a saga, after its repair if that is asked for:
        `GET` or `POST /sagas/{id}/diagnosis`.
        """
        if repair:
            return await self._send_to(saga, "diagnosis", body={})
        return await self._get_of(saga, "diagnosis", has="findings")

    async def diagnoses(self, *, repair: bool = False, cursor: str = "") -> dict[str, Any]:
        """Return what is wrong with a page of open sagas: `POST /diagnoses`."""
        return await self._send("/diagnoses", {"repair": repair, "cursor": cursor}, has="examined")

    async def replay(self, saga: str) -> dict[str, Any]:
        """Return the first divergence of a saga from its replay: `GET /sagas/{id}/replay`."""
        return await self._get_of(saga, "replay", has="folded")

    async def set_schedule(self, name: str, do: str) -> dict[str, Any]:
        """Pause or resume a schedule: `POST /schedules/{name}/pause` or `/resume`."""
        return await self._send(path_of(_SCHEDULE_NAME, name, do), {}, has="state")

    async def trigger(self, name: str, key: str) -> dict[str, Any]:
        """Start a saga of a schedule now: `POST /schedules/{name}/trigger`."""
        return await self._send(path_of(_SCHEDULE_NAME, name, "trigger"), {}, key)


_CREATED = 201


class WorkflowCalls(Calls):
    """Calls of an `Api` for workflows, tools, node kinds, and the health of the deployment."""

    async def register(self, text: str, *, is_json: bool = False) -> dict[str, Any]:
        """Call `POST /workflows` with a document in its original text; repeating it changes nothing.
        `new` of the answer is true if the request made a new version.
        """
        kind = "application/json" if is_json else "application/yaml"
        answer = await self._transport.ask("POST", "/workflows", text=text, content_type=kind)
        return {**self._shaped(answer.document or {}, "name"), "new": answer.status == _CREATED}

    def workflows(self, limit: int | None, cursor: str | None) -> Pages:
        """Return workflows page by page: `GET /workflows`, as `sagas`."""
        return self._pages("/workflows", "workflows", {}, limit, cursor)

    async def workflow(self, name: str, version: str | None = None) -> dict[str, Any]:
        """Call `GET /workflows/{name}`, or the path of one of its versions, which a tag may name."""
        if version is not None and not version.isdecimal():
            tag = await self.tag(name, version)
            if (number := tag["version"]) is None:
                raise CommandFailed(REFUSED, f"workflow `{name}` has no tag `{version}`")
            version = str(number)
        path = path_of("workflows", name, *([] if version is None else [version]))
        return await self._get(path, has="nodes")

    async def tag(self, name: str, tag: str) -> dict[str, Any]:
        """Return a tag of a workflow: `GET /workflows/{name}/tags/{tag}`."""
        return await self._get(path_of("workflows", name, "tags", tag), has="moves")

    async def move_tag(self, name: str, tag: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Set or delete a tag: `POST /workflows/{name}/tags/{tag}`. Repeating it changes nothing."""
        return await self._send(path_of("workflows", name, "tags", tag), body, has="moves")

    async def patch_workflow(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Patch a workflow: `POST /workflows/{name}/patches`. `new` of the answer as of `register`."""
        path = path_of("workflows", name, "patches")
        answer = await self._transport.ask("POST", path, body=body)
        return {**self._shaped(answer.document or {}, "name"), "new": answer.status == _CREATED}

    async def tools(self) -> dict[str, Any]:
        """Return the tools: `GET /tools`."""
        return await self._get("/tools", has="tools")

    async def node_types(self) -> dict[str, Any]:
        """Return the kinds of nodes and the document's schema: `GET /node-types`."""
        return await self._get("/node-types", has="node_types")

    async def health(self) -> dict[str, Any]:
        """Return the health of the deployment: `GET /health`."""
        return await self._get("/health", has="status")


class UserCalls(Calls):
    """Calls of an `Api` for users."""

    async def users(self) -> dict[str, Any]:
        """Call `GET /users` for all pages and merge them: each user once, ordered by spending."""
        page = await self._get("/users", has="users")
        found, day = {row["user"]: row for row in page["users"]}, page["day"]
        while page["next"] is not None:
            page = await self._get("/users", {"cursor": page["next"]}, has="users")
            found |= {row["user"]: row for row in page["users"]}
        return {"day": day, "users": sorted(found.values(), key=lambda row: (-row["spent_usd"], row["user"]))}

    async def user(self, name: str) -> dict[str, Any]:
        """Call `GET /users?user=…`, including users without records."""
        page = await self._get("/users", {"user": name}, has="users")
        return self._shaped(page["users"][0] if page["users"] else {}, "state")

    def facts(self, user: str) -> Pages:
        """Return facts of a user page by page: `GET /users/facts`, as `sagas`."""
        return self._pages("/users/facts", "facts", {"user": user}, None, None)

    async def set_user(self, do: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Block, unblock or limit a user, or erase the user's facts: `POST /users/block` and so on."""
        return await self._send(f"/users/{do}", body, has="erased" if do == "forget" else "state")
