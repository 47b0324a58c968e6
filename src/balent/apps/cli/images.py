"""balent embed and balent simclr: features of images, and backbones that make them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from balent.apps.cli.terminal import err, errors_in_words, say, say_left_out, stoppable


def embed(
    data: Annotated[
        str, typer.Argument(help="Images: a data set by name (see balent list), a folder, an .npz, or shards.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The .npz to write; of shards, a folder with a file for each.")
    ],
    backbone: Annotated[
        str, typer.Option(help="A name (see balent list), a file or folder of weights, a hub name, or random:NAME.")
    ] = "efficientnet-lite0",
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with the data sets. Default: BALENT_DATA.")
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Pixels of a side. Default: what the weights were trained with.")
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Images at a time. Default: what suits size and device. Not used for folders on a CPU."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    backend: Annotated[
        str,
        typer.Option(
            help="onnxruntime, torch, or auto: what the file was begun with, else onnxruntime if it is there."
        ),
    ] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N images of pool and test set.")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read.")] = False,
    column: Annotated[str | None, typer.Option(help="Of shards: the column of images; of .tar, an ending.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Of shards: the column that identifies an image; it is kept beside features.")
    ] = None,
    manifest: Annotated[Path | None, typer.Option(help="Of shards: a file for their list.")] = None,
    engine: Annotated[str, typer.Option(help="Of shards: local, or ray for workers, here or on a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="With ray: a cluster that runs, such as auto.")] = None,
    workers: Annotated[int | None, typer.Option(help="With ray: processes; by default one for each CPU.")] = None,
    span_rows: Annotated[
        int | None, typer.Option(help="With ray: images that a worker reads at a time; by default 1024.")
    ] = None,
    resume: Annotated[Path | None, typer.Option(help="With ray: a folder for finished spans.")] = None,
) -> None:
    """Compute features of images once.  balent embed svhn --data DIR -o svhn-features.npz

    Then: balent run features --data svhn-features.npz. A run that was stopped, or killed, goes on when the same command
    is given again, and ends with the same file.

    Images in shards (a folder, a pattern, s3://…) have features in shards: balent embed photos/ -o features/ --engine
    ray. Then: balent acquire MODEL features/.
    """
    from balent.acquisition import pages
    from balent.data import shard_paths

    pages.keep()
    cluster = {"address": address, "workers": workers, "span_rows": span_rows, "journal": resume}
    settings = {"column": column, "key": key, "manifest": manifest}
    with errors_in_words():
        if output.suffix != ".npz" and shard_paths.names_shards(data):
            one_file = {"data": folder, "limit": limit, "batch_size": batch_size, "device": _other(device, "cpu")}
            _refuse(one_file, f"one .npz, but {output} is not; name FILE.npz, or leave it out")
            how = {"backbone": backbone, "image_size": image_size, "backend": backend}
            _embed_shards(data, output, how, {**settings, "skip_bad": skip_bad}, engine, cluster)
        else:
            _refuse(
                {**settings, **cluster, "engine": _other(engine, "local")},
                f"features of shards, but {output} will be one file; leave it out, or name shards and a folder",
            )
            _embed_one_file(data, output, backbone, folder, image_size, batch_size, device, backend, limit, skip_bad)


def _other(value: str, default: str) -> str | None:
    return None if value == default else value


def _refuse(options: dict[str, Any], what: str) -> None:
    given = ", ".join(OPTIONS.get(name, f"--{name}") for name, value in options.items() if value is not None)
    if given:
        raise ValueError(f"{given} is for {what}")


OPTIONS = {"span_rows": "--span-rows", "journal": "--resume", "batch_size": "--batch-size"}


def _embed_shards(
    data: str, output: Path, how: dict[str, Any], settings: dict[str, Any], engine: str, cluster: dict[str, Any]
) -> None:
    from balent.acquisition import engines
    from balent.apps.cli import screen
    from balent.data.shards import Shards
    from balent.vision.photos import Photos
    from balent.vision.shard_features import SPAN, embed_shards

    if engine == "ray":
        cluster["span_rows"] = cluster["span_rows"] or SPAN
    running, photos = engines.asked(engine, cluster, say), Photos(**how)
    shards = Shards.of(data, size=photos.side, **settings)
    with stoppable(), engines.kept(running), screen.counted("images", err) as progress:
        embed_shards(shards, photos, output, engine=running, progress=progress)
    say_left_out(shards)
    say(f"{output}: {photos.width} features of {shards.size:,} images in {len(shards.shards):,} shards")


def _embed_one_file(
    data: str,
    output: Path,
    backbone: str,
    folder: Path | None,
    image_size: int | None,
    batch_size: int | None,
    device: str,
    backend: str,
    limit: int | None,
    skip_bad: bool,
) -> None:
    from balent.apps.cli import screen
    from balent.data import sources as datasets
    from balent.vision import embedding
    from balent.vision.album import embed_folder
    from balent.vision.blocks import backend_for
    from balent.vision.photos import Photos, named

    place = datasets.image_folder(data) if device == "cpu" else None
    about = {"data": data, "limit": limit}
    if place is not None:
        photos = Photos(backbone, image_size, backend_for(output, backend))
        news = embed_folder(place, photos, output, about=about, limit=limit, skip_bad=skip_bad, say=say)
        width = photos.width
    else:
        images = embedding.first(datasets.load(data, folder, skip_bad=skip_bad, say=say), limit)
        network = named(backbone, image_size)
        size = batch_size or embedding.together(network.image_size or 224, device)
        about |= network.about()
        news = embedding.embed(images, network, output, about=about, batch_size=size, device=device, backend=backend)
        width = network.width
    with stoppable(), screen.pace("images", err) as show:
        for done, total in news:
            show(done, total, "")
    say(f"{output}: {width} features of {total} images")


def simclr(
    data: Annotated[str, typer.Argument(help="Images: a data set by name, or an .npz; labels are not looked at.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .safetensors to write.")],
    backbone: Annotated[str, typer.Option(help="A name (see balent list); resnet10 for CPUs.")] = "resnet50",
    folder: Annotated[
        Path | None, typer.Option("--data", help="Folder with the data sets. Default: BALENT_DATA.")
    ] = None,
    epochs: Annotated[int, typer.Option(help="How often each image is seen, in two views.")] = 500,
    steps: Annotated[int | None, typer.Option(help="Batches after which to end, if epochs would be longer.")] = None,
    batch_size: Annotated[int, typer.Option(help="Images per step; each is contrasted with all others.")] = 192,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 0.0003,
    image_size: Annotated[int, typer.Option(help="Pixels of a side that views are scaled to.")] = 224,
    temperature: Annotated[float, typer.Option(help="Of the loss, NT-Xent.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Of first weights, order and views.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N images of the pool.")] = None,
) -> None:
    """Train a backbone without labels, by SimCLR.  balent simclr cifar100 --data DIR -o cifar100.safetensors

    Then: balent embed DATA --backbone FILE. Defaults are the paper's. A run that was stopped, or killed, goes on from
    its last checkpoint when the same command is given again, and ends with the same weights.
    """
    from statistics import fmean

    from balent.acquisition import pages
    from balent.apps.cli import screen
    from balent.data import sources as datasets
    from balent.vision import embedding
    from balent.vision.pretraining import pretrain
    from balent.vision.simclr import SimCLR

    pages.keep()
    with errors_in_words():
        images = embedding.first(datasets.load(data, folder, say=say), limit)
        settings = SimCLR(epochs, batch_size, learning_rate, image_size, temperature, steps=steps, seed=seed)
        losses: list[float] = []
        with stoppable(), screen.pace("steps", err) as show:
            for step in pretrain(images, backbone, settings, output, device):
                losses = step.losses
                show(step.done, step.steps, f", loss {fmean(losses[-20:]):.3f}" if losses else "")
        if losses:
            few = max(1, len(losses) // 20)
            say(f"loss: {fmean(losses[:few]):.3f} in the first {few} steps, {fmean(losses[-few:]):.3f} in the last")
        say(f"{output}: weights of {backbone}; for features: balent embed {data} --backbone {output} -o FILE.npz")
