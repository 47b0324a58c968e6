"""balent embed and balent simclr: features of images, and backbones that make them."""

from pathlib import Path
from typing import Annotated

import typer

from balent.apps.cli.terminal import err, errors_in_words, say, stoppable


def embed(
    data: Annotated[str, typer.Argument(help="Images: a data set by name, a folder, or an .npz; see balent list.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz to write.")],
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
) -> None:
    """Compute features of images once.  balent embed svhn --data DIR -o svhn-features.npz

    Then: balent run features --data svhn-features.npz. A run that was stopped, or killed, goes on when the same command
    is given again, and ends with the same file.
    """
    from balent.acquisition import pages
    from balent.apps.cli import screen
    from balent.data import sources as datasets
    from balent.vision import embedding
    from balent.vision.album import embed_folder
    from balent.vision.blocks import backend_for
    from balent.vision.photos import Photos, named

    pages.keep()
    with errors_in_words():
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
            news = embedding.embed(
                images, network, output, about=about, batch_size=size, device=device, backend=backend
            )
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
