// Compiled once for each instruction set, with BALENT_LEVEL as its name (see CMakeLists.txt).
#include "beta.hpp"
#include "convolved.hpp"
#include "masks.hpp"
#include "moments.hpp"
#include "thinned.hpp"

#define BALENT_TEXT(x) BALENT_TEXT_(x)
#define BALENT_TEXT_(x) #x
#define BALENT_NAME(level) BALENT_NAME_(level)
#define BALENT_NAME_(level) balent_level_##level

extern const Level BALENT_NAME(BALENT_LEVEL);
const Level BALENT_NAME(BALENT_LEVEL) = {BALENT_TEXT(BALENT_LEVEL), moments_range<float>, moments_range<double>,
                                         posterior_range, convolved_range, thinned_range, kept_range};
