//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "common/names.h"

using namespace plateau::rt;

const char *plateau::rt::getComponentName(int32_t component) {
  static const char *const names[PLR_COMPONENTS] = {"parameters", "gradients", "optimizer", "embedding", "attention",
                                                    "dense",      "routing",   "dispatch",  "experts",   "vocabulary",
                                                    "boundaries", "staging",   "workspace", "external"};
  return component >= 0 && component < PLR_COMPONENTS ? names[component] : "unknown component";
}

const char *plateau::rt::getPhaseName(int32_t phase) {
  static const char *const names[PLR_PHASES] = {"forward", "backward", "optimizer"};
  return phase >= 0 && phase < PLR_PHASES ? names[phase] : "unknown phase";
}

const char *plateau::rt::getLaneName(plr_lane_kind lane) {
  static const char *const names[PLR_LANES] = {"compute", "comm", "h2d", "d2h", "host"};
  return lane >= 0 && lane < PLR_LANES ? names[lane] : "unknown lane";
}

const char *plateau::rt::getSpaceName(plr_space space) {
  static const char *const names[PLR_SPACES] = {"device", "host"};
  return space >= 0 && space < PLR_SPACES ? names[space] : "unknown space";
}

std::string plateau::rt::describe(const plr_tag &tag) {
  std::string text = tag.op;
  text += " (";
  if (tag.layer >= 0)
    text += "layer " + std::to_string(tag.layer) + ", ";
  text += getComponentName(tag.component);
  text += ", ";
  text += getPhaseName(tag.phase);
  return text += ")";
}

std::string plateau::rt::checkTag(const plr_tag *tag) {
  if (!tag)
    return "the tag is null";
  if (!tag->op)
    return "the tag names no op";
  if (tag->component < 0 || tag->component >= PLR_COMPONENTS)
    return "the tag's component is " + std::to_string(tag->component) + ", but must be 0 ... " +
           std::to_string(PLR_COMPONENTS - 1);
  if (tag->phase < 0 || tag->phase >= PLR_PHASES)
    return "the tag's phase is " + std::to_string(tag->phase) + ", but must be 0 ... " + std::to_string(PLR_PHASES - 1);
  return {};
}
