// How many positions of the prompt an image takes.
#pragma once

namespace thalweg::text {

/// Positions of an image of `width` x `height` pixels, both in [1, 2^31): per row of cells the cells and a
/// new-line, plus start and end. At most 1024. The size is first brought to where the service's own resizing
/// leaves it (patches of 14 pixels, 3 x 3 patches a cell, at least 295,936 pixels). Source: the model's image
/// pre-processing.
int image_tokens(int width, int height);

}  // namespace thalweg::text
