"""Folders of images, and TinyImageNet: what is handled is said, what cannot be is listed."""

import io
import os

import numpy as np
import pytest
import torch
from helpers.formats import picture, pixels, tinyimagenet, write_files, write_zip

from balent.data.sources import all_labelled, load, redundant

Image = pytest.importorskip("PIL.Image")


def photos(classes=("cat", "dog"), each=6, part="train", shape=(8, 8, 3)):
    """Files of a folder for each class."""
    prefix = f"{part}/" if part else ""
    names = [(c, i) for c in range(len(classes)) for i in range(each)]
    return {f"{prefix}{classes[c]}/{i}.png": picture(shape, seed=100 * c + i) for c, i in names}


def read(place, **options):
    said = []
    return load(str(place), say=said.append, **options), said


def stored(content):
    """The pixels of a file that holds them as they are."""
    return torch.from_numpy(np.array(Image.open(io.BytesIO(content)))).permute(2, 0, 1).float() / 255


def test_class_folders_below_train_and_test(tmp_path):
    files = photos() | photos(each=2, part="test")
    write_files(tmp_path, files)
    data, said = read(tmp_path)
    assert said == []
    assert (data.classes, data.names, data.image) == (2, ("cat", "dog"), (3, 8, 8))
    assert data.y_train.tolist() == [0] * 6 + [1] * 6
    assert data.y_test.tolist() == [0, 0, 1, 1]
    assert torch.equal(data.x_train[7], stored(files["train/dog/1.png"]))
    assert torch.equal(data.x_test[3], stored(files["test/dog/1.png"]))
    assert all_labelled(data) is data


@pytest.mark.parametrize("part", ["train", ""], ids=["train", "no parts"])
def test_without_a_test_part_one_in_five_of_each_class_is_held_out_always_the_same(tmp_path, part):
    files = photos(each=11, part=part)
    write_files(tmp_path / "a", files)
    write_files(tmp_path / "b", files)
    (data, said), (again, _) = read(tmp_path / "a"), read(tmp_path / "b")
    assert data.y_train.bincount().tolist() == [9, 9]
    assert data.y_test.bincount().tolist() == [2, 2]
    assert torch.equal(data.x_test[:], again.x_test[:])
    assert "one in 5 labelled points of each class is held out (4 of 22)" in said[0]


def test_numbers_as_folders_are_classes_in_the_order_of_their_values(tmp_path):
    write_files(tmp_path, photos(classes=("10", "9", "2"), each=1))
    data, _ = read(tmp_path)
    assert data.names == ("2", "9", "10")


def test_images_in_no_class_folder_wait_for_a_label(tmp_path):
    write_files(tmp_path, photos() | photos(each=2, part="test"))
    write_files(tmp_path, {"train/loose.png": picture((8, 8, 3)), "train/unlabelled/1.png": picture((8, 8, 3))})
    data, said = read(tmp_path)
    assert sorted(data.y_train.tolist()) == [-1, -1] + [0] * 6 + [1] * 6
    assert "2 of 18 points have no label" in said
    with pytest.raises(ValueError, match="2 of 14 points have none"):
        all_labelled(data)


def test_a_folder_without_any_label_is_a_pool(tmp_path):
    write_files(tmp_path, {f"{i}.png": picture((8, 8, 3), seed=i) for i in range(4)})
    data, _ = read(tmp_path)
    assert (len(data.x_train), len(data.x_test), data.classes) == (4, 0, 0)
    assert data.y_train.tolist() == [-1] * 4


def labelled(tmp_path, rows, header="file,label"):
    write_files(tmp_path, {f"{i}.png": picture((8, 8, 3), seed=i) for i in range(4)})
    (tmp_path / "labels.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return read(tmp_path)


def test_a_table_of_labels(tmp_path):
    data, said = labelled(tmp_path, ["2.png,dog", "0.png,cat", "1.png,"])
    assert data.names == ("cat", "dog")
    assert data.y_train.tolist() == [0, -1, 1, -1]  # 3.png is not in the table
    assert "2 of 4 points have no label" in said


def test_a_table_may_say_which_images_test(tmp_path):
    data, _ = labelled(tmp_path, ["0.png,1,train", "1.png,3,train", "2.png,3,test"], "Filename,Label,Split")
    assert data.y_test.tolist() == [1]
    assert (data.names, data.y_train.tolist()) == (("1", "3"), [0, 1, -1])


@pytest.mark.parametrize(
    ("rows", "header", "why"),
    [
        (["0.png,cat", "9.png,dog"], "file,label", "line 3, names '9.png', but there is no such image"),
        (["0.png,cat", "0.png,dog"], "file,label", "line 3, names '0.png' a second time"),
        (["0.png,1", "1.png,2.5"], "file,label", r"labels\.csv, line 3, has '2\.5'"),
        (["0.png,1", "1.png,cat"], "file,label", "not both.*line 3, has 'cat'.*line 2, has '1'"),
        (["0.png,-1"], "file,label", "line 2, has '-1'; leave it empty"),
        (["0.png,cat"], "name,label", "must have a column file or filename"),
        (["0.png,cat"], "file,kind", "must have a column label or class"),
        (["0.png,cat,train", "1.png,dog,test"], "file,label,split", "class 'dog' in the test set.*does not occur"),
        (["0.png,cat,train", "1.png,,test"], "file,label,split", "a test set needs labels"),
        (["0.png,cat,test", "1.png,dog,val"], "file,label,split", "has 'val' beside test"),
        (["0.png,cat,tomorrow"], "file,label,split", "train or test, but .* has 'tomorrow'"),
    ],
)
def test_what_is_wrong_with_a_table_of_labels(tmp_path, rows, header, why):
    with pytest.raises(ValueError, match=why):
        labelled(tmp_path, rows, header)


def test_classes_of_the_test_folder_must_occur_in_train(tmp_path):
    write_files(tmp_path, photos() | photos(classes=("bird",), each=1, part="test"))
    with pytest.raises(ValueError, match=r"bird.0\.png is of class 'bird' in the test set.*there are cat, dog"):
        read(tmp_path)


def test_validation_images_are_left_out_where_there_is_a_test_part(tmp_path):
    write_files(tmp_path, photos() | photos(each=2, part="val"))
    assert len(read(tmp_path)[0].y_test) == 4
    write_files(tmp_path, photos(each=1, part="test"))
    data, said = read(tmp_path)
    assert (len(data.y_train), len(data.y_test)) == (12, 2)
    assert said == ["left out, since there is a test part: 4 images of the validation part"]


def test_images_beside_the_parts_are_not_taken_for_a_class(tmp_path):
    write_files(tmp_path, photos() | photos(classes=("cat",), part="extra"))
    with pytest.raises(ValueError, match="has images in 'extra' beside 'train'"):
        read(tmp_path)


def test_a_hundred_unreadable_images_are_a_hundred_names_in_the_error(tmp_path):
    write_files(tmp_path, photos() | {f"train/cat/bad{i}.png": b"" for i in range(100)})
    with pytest.raises(ValueError, match="100 of 112") as error:
        read(tmp_path)
    assert str(error.value).count(".png (") == 100
    assert any("and 80 more" in note for note in read(tmp_path, skip_bad=True)[1])


def test_odd_images_are_converted_and_that_is_said(tmp_path):
    """Grey, transparent, palette, 16 bits, lying on their side, of other sizes: all become one shape."""
    deep = io.BytesIO()
    Image.fromarray((pixels(8, 8).astype(np.uint16)) << 8).save(deep, "PNG")
    odd = {
        "train/cat/grey.png": picture((8, 8)),
        "train/cat/clear.png": picture((8, 8, 4)),
        "train/cat/palette.gif": picture((8, 8, 3), kind="GIF"),
        "train/cat/deep.png": deep.getvalue(),
        "train/dog/cmyk.jpg": picture((8, 8, 3), kind="JPEG", mode="CMYK"),
        "train/dog/wide.png": picture((16, 40, 3)),
    }
    write_files(tmp_path, photos() | photos(each=1, part="test") | odd)
    data, said = read(tmp_path)
    assert data.image == (3, 8, 8)
    assert len(data.y_train) == 18
    assert said == [
        "grey, made colour: 2 of 20 images",
        "of 16 bits a pixel, brought to 8: 1 of 20 images",
        "resized, and cropped around the centre, to 8 × 8: 1 of 20 images",
        "transparent, laid on white: 1 of 20 images",
    ]


def test_transparent_pixels_become_white_whatever_colour_hides_below(tmp_path):
    hidden = np.zeros((8, 8, 4), np.uint8)
    hidden[:4] = (10, 20, 30, 255)
    file = io.BytesIO()
    Image.fromarray(hidden).save(file, "PNG")
    write_files(tmp_path, {"a/1.png": file.getvalue(), "b/2.png": picture((8, 8, 3))})
    data, _ = read(tmp_path)
    top, bottom = data.x_train[0][:, :4], data.x_train[0][:, 4:]
    assert torch.equal(top[:, 0, 0] * 255, torch.tensor([10.0, 20.0, 30.0]))
    assert bool((bottom == 1).all())


def test_sixteen_bits_keep_their_brightness(tmp_path):
    """Pillow's own conversion would clip everything above 255 to white."""
    file = io.BytesIO()
    Image.fromarray(np.full((8, 8), 128 << 8, np.uint16)).save(file, "PNG")
    write_files(tmp_path, {"a/1.png": file.getvalue(), "a/2.png": picture((8, 8))})
    data, _ = read(tmp_path)
    assert data.image == (1, 8, 8)
    assert bool((data.x_train[0] * 255 == 128).all())


def test_photographs_are_turned_upright(tmp_path):
    image, exif = Image.fromarray(pixels(6, 8, 3)), Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rows are columns
    file = io.BytesIO()
    image.save(file, "PNG", exif=exif)
    write_files(tmp_path, {"a/1.png": file.getvalue()})
    data, said = read(tmp_path)
    assert data.image == (3, 8, 6)
    assert not any("resized" in note for note in said)
    assert torch.equal(data.x_train[0], torch.from_numpy(pixels(6, 8, 3)).permute(2, 0, 1).rot90(-1, (1, 2)) / 255)


def test_a_size_can_be_asked_for_and_large_images_become_224(tmp_path):
    write_files(tmp_path, {f"a/{i}.jpg": picture((300, 500, 3), seed=i, kind="JPEG") for i in range(2)})
    assert read(tmp_path)[0].image == (3, 224, 224)
    data, said = read(tmp_path, size=32)
    assert data.image == (3, 32, 32)
    assert "resized, and cropped around the centre, to 32 × 32: 2 of 2 images" in said
    assert read(tmp_path)[0].image == (3, 224, 224)  # each size has a cache of its own


def test_the_centre_is_kept(tmp_path):
    """Black, white, black: the middle third of a wide image is white."""
    wide = np.zeros((10, 30, 3), np.uint8)
    wide[:, 10:20] = 255
    file = io.BytesIO()
    Image.fromarray(wide).save(file, "PNG")
    write_files(tmp_path, {"a/1.png": file.getvalue()})
    assert bool((read(tmp_path, size=10)[0].x_train[0] == 1).all())


def test_unreadable_images_are_all_listed_and_skipped_only_on_request(tmp_path):
    files = photos(each=300) | photos(each=3, part="test")  # more than are read together
    bad = {
        "train/cat/5.png": files["train/cat/5.png"][:60],
        "train/dog/299.png": b"no image at all",
        "test/cat/1.png": b"",
    }
    write_files(tmp_path, files | bad)
    with pytest.raises(ValueError, match="3 of 606 images cannot be read") as error:
        read(tmp_path)
    assert all(name in str(error.value) for name in bad)
    data, said = read(tmp_path, skip_bad=True)
    assert (len(data.x_train), len(data.y_train), len(data.x_test), len(data.y_test)) == (598, 598, 5, 5)
    assert any("left out: 3 of 606 images cannot be read" in note and "dog/299.png" in note for note in said)
    assert data.y_train.bincount().tolist() == [299, 299]
    with pytest.raises(ValueError, match="3 of 606 images cannot be read"):
        read(tmp_path)


def test_skipping_keeps_images_and_labels_together(tmp_path):
    files = {f"{c}/{i}.png": picture((8, 8, 3), seed=i) for i, c in enumerate("aabb")}
    write_files(tmp_path, files | {"a/1.png": b"damaged"})
    data, _ = read(tmp_path, skip_bad=True)
    assert data.y_train.tolist() == [0, 1, 1]
    for row, name in enumerate(("a/0.png", "b/2.png", "b/3.png")):
        assert torch.equal(data.x_train[row], stored(files[name]))


def test_floating_point_pixels_are_refused(tmp_path):
    file = io.BytesIO()
    Image.fromarray(np.ones((4, 4), np.float32)).save(file, "TIFF")
    write_files(tmp_path, {"a/1.tiff": file.getvalue(), "a/2.png": picture((4, 4, 3))})
    with pytest.raises(ValueError, match=r"a/1\.tiff \(ValueError: pixels are floating-point"):
        read(tmp_path)


def test_a_folder_without_images_says_so(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing to see")
    with pytest.raises(ValueError, match=r"has no images; they end in \.jpg"):
        read(tmp_path)
    with pytest.raises(ValueError, match="size and skip_bad are for folders"):
        load("moons", size=8)
    with pytest.raises(ValueError, match="positive number of pixels"):
        load(str(tmp_path), size=0)


def test_folders_whose_names_are_not_utf_8_are_classes(tmp_path):
    """Defect: UnicodeEncodeError when names were written to the cache."""
    name = os.fsdecode(b"caf\xe9")
    write_files(tmp_path, photos(classes=(name, "dog"), part=""))
    for _ in range(2):  # decoded, and from the cache
        assert read(tmp_path)[0].names == (name, "dog")


def test_points_have_the_names_of_their_files(tmp_path):
    write_files(tmp_path, photos() | photos(each=2, part="test"))
    for _ in range(2):
        data, _ = read(tmp_path)
        assert data.ids_train.tolist() == [f"train/{name}/{i}.png" for name in ("cat", "dog") for i in range(6)]
        assert data.ids_test.tolist() == ["test/cat/0.png", "test/cat/1.png", "test/dog/0.png", "test/dog/1.png"]
    assert redundant(data, 2).ids_train.tolist() == 2 * data.ids_train.tolist()


def test_links_to_nowhere_are_unreadable_images(tmp_path):
    """Defect: they could not be skipped."""
    write_files(tmp_path, photos(part=""))
    (tmp_path / "cat" / "lost.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(ValueError, match=r"1 of 13 images cannot be read: cat/lost\.png \(FileNotFoundError"):
        read(tmp_path)
    assert len(read(tmp_path, skip_bad=True)[0].ids_train) == 10


def test_a_link_to_a_folder_above_does_not_give_every_image_again(tmp_path):
    """Defect: up to 40 times, as deep as the system follows links."""
    write_files(tmp_path, photos(part=""))
    (tmp_path / "cat" / "up").symlink_to(tmp_path)
    data, _ = read(tmp_path)
    assert len(data.y_train) + len(data.y_test) == 12


# ── TinyImageNet ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("packed", [True, False], ids=["zip", "unpacked"])
def test_tinyimagenet_is_read(tmp_path, packed):
    files, wnids = tinyimagenet()
    if packed:
        write_zip(tmp_path / "tiny-imagenet-200.zip", "tiny-imagenet-200", files)
    else:
        write_files(tmp_path / "tinyimagenet" / "tiny-imagenet-200", files)
    said = []
    data = load("tinyimagenet", tmp_path, say=said.append)
    assert (data.image, data.names, data.classes) == ((3, 64, 64), tuple(wnids), 3)
    assert data.y_train.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert data.y_test.tolist() == [2, 1, 0, 2, 1]  # as the annotations have it, whose ids descend
    assert torch.equal(data.x_train[5], stored(files[f"train/{wnids[1]}/images/{wnids[1]}_1.JPEG"]))
    assert torch.equal(data.x_test[3], stored(files["val/images/val_3.JPEG"]))
    assert len(said) == packed  # the archive has a published checksum


def test_a_damaged_name_in_the_archive_does_not_lose_its_image(tmp_path):
    """Defect: one flipped bit in the list of files, and an image of train/ was left out without a word."""
    path = tmp_path / "tiny-imagenet-200.zip"
    write_zip(path, "tiny-imagenet-200", tinyimagenet()[0])
    whole = path.read_bytes()
    at = whole.rindex(b"train/n00000009/images")
    path.write_bytes(whole[: at + 5] + b"o" + whole[at + 6 :])
    with pytest.raises(ValueError, match=r"200\.zip .* has a file 'trainon00000009/images/.*', which the set does not"):
        load("tinyimagenet", tmp_path)


def test_tinyimagenet_in_need_is_named(tmp_path):
    files, wnids = tinyimagenet()
    place = tmp_path / "tiny-imagenet-200"
    with pytest.raises(FileNotFoundError, match=r"needs tiny-imagenet-200\.zip.*cs231n\.stanford\.edu"):
        load("tinyimagenet", tmp_path)
    write_zip(tmp_path / "tiny-imagenet-200.zip", "tiny-imagenet-200", files)
    whole = (tmp_path / "tiny-imagenet-200.zip").read_bytes()
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(whole[:-500])
    with pytest.raises(ValueError, match=r"is damaged.*90528d7ca1a48142e341f4ef8d21d0de, 248,100,043 bytes"):
        load("tinyimagenet", tmp_path)
    at = whole.index(files["val/images/val_1.JPEG"]) + 400
    (tmp_path / "tiny-imagenet-200.zip").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(
        ValueError, match=r"1 of 17 images cannot be read: .*val_1\.JPEG \(BadZipFile.*get the set again"
    ):
        load("tinyimagenet", tmp_path, say=lambda note: None)
    write_files(place, files)
    (place / f"train/{wnids[0]}/images/{wnids[0]}_2.JPEG").write_bytes(b"damaged")
    with pytest.raises(ValueError, match=r"1 of 17 images cannot be read: .*_2\.JPEG"):
        load("tinyimagenet", tmp_path)
    annotations = place / "val/val_annotations.txt"
    annotations.write_text("val_77.JPEG\tn00000009\n")
    with pytest.raises(ValueError, match=r"line 1 of val/val_annotations\.txt names no image.*'val_77\.JPEG'"):
        load("tinyimagenet", tmp_path)
    annotations.write_text("val_0.JPEG\tn12345678\n")
    with pytest.raises(ValueError, match=r"class 'n12345678' of val_0\.JPEG does not occur in train"):
        load("tinyimagenet", tmp_path)
    annotations.unlink()
    with pytest.raises(ValueError, match=r"no val/val_annotations\.txt"):
        load("tinyimagenet", tmp_path)
