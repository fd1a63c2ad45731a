//===- Report.cpp - what --verify-fusions prints --------------------------===//

#include "gptc/Verify/VerifyFusions.h"
#include <fmt/format.h>

using namespace gptc::verify;

std::string gptc::verify::reportText(const Verification &verification) {
  if (!verification.error.empty())
    return "error: " + verification.error + '\n';
  size_t fusions = 6, places = 5, made = 4;
  for (const FusionCheck &check : verification.checks) {
    fusions = std::max(fusions, check.fusion.size());
    places = std::max(places, check.place.size());
    made = std::max(made, check.made.size());
  }
  std::string text;
  if (!verification.checks.empty())
    text +=
        fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>5} {:>9} {:>6} {:>9} {:>9}  "
                    "{:<4}  {}\n",
                    "fusion", fusions, "place", places, "made", made, "times",
                    "max error", "ulp", "unfused", "bound", "", "of");
  for (const FusionCheck &check : verification.checks)
    text += fmt::format(
        "{:<{}}  {:<{}}  {:<{}}  {:>5} {:>9.2e} {:>6.3g} {:>9.2e} {:>9.2e}  "
        "{:<4}  {}\n",
        check.fusion, fusions, check.place, places, check.made, made,
        check.count, check.worst.error, check.worst.ulps(), check.plainError,
        check.worst.bound, check.ok() ? "ok" : "FAIL", check.of);
  for (const FusionCheck &check : verification.checks)
    if (!check.ok())
      text += fmt::format(
          "{} at {} in @{}: element {}: expected {:.9g}, got {:.9g}; error "
          "{:.3e} is above the bound {:.3e}\n",
          check.fusion, check.place, check.function, check.worst.index,
          check.worst.exact, check.worst.actual, check.worst.error,
          check.worst.bound);
  for (const std::string &note : verification.notes)
    text += "note: " + note + '\n';
  int64_t verified = 0;
  for (const FusionCheck &check : verification.checks)
    verified += check.count;
  text += fmt::format("{} fused ops and results verified", verified);
  if (verification.leftOut)
    text += fmt::format("; functions left out: {}", verification.leftOut);
  return text + '\n';
}
