import torch

from datadefense.tasks.augment import crop_and_flip


def slow(image, down, right, flip):
    """One image, pixel by pixel: shift within black, then mirror."""
    channels, height, width = image.shape
    result = torch.zeros_like(image)
    for row in range(height):
        for column in range(width):
            source = (width - 1 - column if flip else column) + right - 4
            if 0 <= row + down - 4 < height and 0 <= source < width:
                result[:, row, column] = image[:, row + down - 4, source]
    assert channels == image.shape[0]
    return result


def test_against_pixel_loops():
    draw = torch.Generator().manual_seed(0)
    images = torch.randint(1, 256, (12, 3, 9, 9), generator=draw, dtype=torch.uint8)
    augmented = crop_and_flip(images, torch.Generator().manual_seed(7))
    again = torch.Generator().manual_seed(7)
    draws = [torch.randint(high, (12,), generator=again) for high in (9, 9, 2)]
    for image, result, down, right, flip in zip(images, augmented, *draws, strict=True):
        assert torch.equal(result, slow(image, int(down), int(right), bool(flip)))
    assert augmented.shape == images.shape
