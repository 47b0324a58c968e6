// What one compiled instruction set offers: the same functions for each, chosen when the module loads.
#pragma once

#include <cstdint>

struct Layout {  // strides in elements
    int64_t pool, draws, classes;
    int64_t pool_stride, draw_stride, class_stride;
};

struct Output {  // [pool, classes] three times, and [pool]
    double *mean, *var, *within, *entropy;
};

struct Convolution {  // of images [points, in, height, width], padded already; all draws, up to the units of a linear map
    int64_t points, draws, in, height, width, kernel, out, pool, units;
    bool per_point;  // masks are [draws, points, channels], else [draws, 1, channels]
    float slope;     // of the pointwise function below 0
    int64_t padded_out() const { return (out + 3) / 4 * 4; }
    int64_t high() const { return (height - kernel + 1) / pool; }
    int64_t wide() const { return (width - kernel + 1) / pool; }
};

struct ConvolutionData {  // weight [in, kernel, kernel, out padded to fours]; linear [out, high, wide, units]; out [points, draws, units]
    const float *images, *weight, *bias, *linear, *linear_bias, *kept, *after;
    float* out;
};

struct Thinned {  // a linear map of points [points, units], padded to whole vectors
    int64_t points, draws, units, width, threshold;
    bool drop;  // take off what is dropped, rather than add up what is kept
};

struct ThinnedData {  // weight [units, width]; keys [draws, points]; out [points, draws, width]
    const float *values, *weight, *bias;
    const int64_t* keys;
    float* out;
};

struct Level {
    const char* name;
    // Points begin..end; the answer is the first bad row as point · draws + draw, or -1.
    int64_t (*moments32)(const float*, const Layout&, const Output&, bool logits, double tolerance, int64_t, int64_t);
    int64_t (*moments64)(const double*, const Layout&, const Output&, bool logits, double tolerance, int64_t, int64_t);
    bool (*posterior)(const Output&, double* out, double floor, double width, int64_t, int64_t);
    bool (*convolved)(const ConvolutionData&, const Convolution&, int64_t, int64_t);
    void (*thinned)(const ThinnedData&, const Thinned&, int64_t, int64_t);
    void (*kept)(const int64_t* keys, float* out, int64_t units, int64_t threshold, int64_t, int64_t);
};
