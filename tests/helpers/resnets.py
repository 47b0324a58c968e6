"""How others name the parts of a ResNet."""


def torchvision_names():
    """How torchvision builds a ResNet-18: two convolutions a block, two blocks a layer, shortcuts between sizes."""
    layers = [("conv1", "bn1")]
    for layer in range(1, 5):
        for block in range(2):
            at = f"layer{layer}.{block}"
            layers += [(f"{at}.conv1", f"{at}.bn1"), (f"{at}.conv2", f"{at}.bn2")]
            layers += [(f"{at}.downsample.0", f"{at}.downsample.1")] if layer > 1 and block == 0 else []
    of_norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    return {f"{conv}.weight" for conv, _ in layers} | {f"{norm}.{part}" for _, norm in layers for part in of_norm}
