"""Ray Serve as the engine for more than one machine: per task one deployment that predicts and one that explains.

Predictions and explanations are deployments of their own, so that neither waits for the other and each scales alone.
Ray is imported when something is deployed; the web service only speaks HTTP to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from inference.errors import EngineRefused
from inference.runtime import THREAD_SETTINGS

if TYPE_CHECKING:
    from starlette.requests import Request

APPLICATION = "dynahit"
MAX_BATCH = 8
MAX_BODY_BYTES = 1_000_000


@dataclass(frozen=True)
class RaySettings:
    """How a deployment is laid out. Replicas grow from ``min_replicas`` to ``max_replicas`` with the load.

    ``cpus`` and ``gpus`` are what each replica reserves; fractions are allowed, and None shares out what the cluster
    has, at most one each. ``head`` is the address of a running cluster ("auto" for this machine's), None starts one on
    this machine alone.
    """

    host: str = "127.0.0.1"
    port: int = 8010
    head: str | None = None
    min_replicas: int = 1
    max_replicas: int = 1
    explain_replicas: int = 1
    cpus: float | None = None
    gpus: float = 0.0
    task_packages: tuple[str, ...] = ()
    local_files_only: bool = False


def deploy(models: Mapping[str, str], settings: RaySettings) -> None:
    """Deploy the models (task code -> reference) and return once they answer; they stay until `shut_down`.

    Raises EngineRefused when Ray isn't installed or a replica can't load its model.
    """
    try:
        import ray
        from ray import serve
    except ImportError as error:
        raise EngineRefused("ray", f"Ray Serve is not installed ({error}); pip install 'dynahit[ray]'") from error
    environment = {"env_vars": dict(THREAD_SETTINGS)}
    if settings.head is None:
        ray.init(include_dashboard=False, runtime_env=environment, log_to_driver=False, configure_logging=False)
    else:
        ray.init(address=settings.head, runtime_env=environment, log_to_driver=False, configure_logging=False)
    serve.start(http_options={"host": settings.host, "port": settings.port, "location": "HeadOnly"})
    shared_out = replace(settings, cpus=cpus_each(models, settings, ray.cluster_resources().get("CPU", 1.0)))
    serve.run(application(models, shared_out), name=APPLICATION, route_prefix="/")


def cpus_each(models: Mapping[str, str], settings: RaySettings, available: float) -> float:
    """Return what each replica reserves, so that the least number of all tasks' replicas fits.

    A replica that finds no room would wait for ever. Raises EngineRefused when what is asked for is more than there is.
    """
    replicas = len(models) * (settings.min_replicas + settings.explain_replicas)
    if settings.cpus is None:
        # Ray counts in hundredths; rounding up would leave the last replica out.
        return max(0.01, min(1.0, int(available / replicas * 100) / 100))
    if settings.gpus == 0 and replicas * settings.cpus > available + 1e-6:
        raise EngineRefused(
            "ray",
            f"{replicas} copies with {settings.cpus:g} processors each don't fit into the cluster's {available:g}. "
            "Reserve less for each (--cpus 0.25), serve fewer tasks, or add machines",
        )
    return settings.cpus


def shut_down() -> None:
    """End the deployments, and Ray itself if this process started it."""
    import ray
    from ray import serve

    serve.shutdown()
    ray.shutdown()


def application(models: Mapping[str, str], settings: RaySettings) -> Any:
    """Return the Serve application of these models, not yet run."""
    from ray import serve

    resources = {"num_cpus": settings.cpus, "num_gpus": settings.gpus}
    replica = serve.deployment(Replica)
    bound = {}
    for task_code, reference in models.items():
        arguments = (task_code, reference, settings.task_packages, settings.local_files_only)
        predicting = replica.options(
            name=f"{task_code}-predict",
            ray_actor_options=resources,
            max_ongoing_requests=4 * MAX_BATCH,
            autoscaling_config={
                "min_replicas": settings.min_replicas,
                "max_replicas": settings.max_replicas,
                "target_ongoing_requests": MAX_BATCH,
            },
        )
        explaining = replica.options(
            name=f"{task_code}-explain",
            ray_actor_options=resources,
            max_ongoing_requests=MAX_BATCH,
            num_replicas=settings.explain_replicas,
        )
        bound[task_code] = (predicting.bind(*arguments), explaining.bind(*arguments))
    return serve.deployment(Ingress).options(ray_actor_options={"num_cpus": 0}).bind(bound)


class Replica:
    """One copy of one model in a process of its own; a batch is what came while the last one was computed."""

    def __init__(self, task_code: str, reference: str, task_packages: tuple[str, ...], local_files_only: bool) -> None:
        """Load the model; until then the replica is not ready."""
        from ray import serve

        from hits.tasks import register_package, task
        from inference.loading import load_model
        from inference.remote.service import ModelService

        for package in task_packages:
            register_package(package)
        spec = task(task_code)
        service = ModelService(load_model(spec, reference, local_files_only=local_files_only), len(spec.model_fields))

        @serve.batch(max_batch_size=MAX_BATCH, batch_wait_timeout_s=0.0)  # type: ignore[untyped-decorator]  # not installed
        async def answer(requests: list[object]) -> list[dict[str, Any]]:
            return await asyncio.to_thread(service.answer, requests)

        self._answer = answer

    async def answer(self, request: object) -> dict[str, Any]:
        """Answer one request of the protocol in inference.remote.service."""
        found: dict[str, Any] = await self._answer(request)
        return found


class Ingress:
    """Takes HTTP and passes the request on to its model's replicas."""

    def __init__(self, models: Mapping[str, tuple[Any, Any]]) -> None:
        self._models = dict(models)

    async def __call__(self, request: Request) -> Any:
        """Answer ``POST /predictions/TASK``, ``POST /explanations/TASK`` and ``GET /health``."""
        from starlette.responses import JSONResponse

        _, verb, *names = request.url.path.split("/")
        if verb == "health":
            return JSONResponse({"models": sorted(self._models)})
        if verb not in ("predictions", "explanations") or len(names) != 1 or names[0] not in self._models:
            message = f"There is no {request.url.path!r}; the models are {sorted(self._models)}."
            return JSONResponse({"error": message}, status_code=404)
        body = await request.body()
        if len(body) > MAX_BODY_BYTES:
            return JSONResponse({"error": f"{len(body)} bytes are too many."}, status_code=413)
        try:
            asked = await request.json()
        except ValueError as error:
            return JSONResponse({"error": f"The body is not JSON: {error}"}, status_code=400)
        handle = self._models[names[0]][verb == "explanations"]
        return JSONResponse(await handle.answer.remote(asked))
