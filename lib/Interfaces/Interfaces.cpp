//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// The generated definitions of the interfaces and of the enums they speak in.
//===----------------------------------------------------------------------===//

#include "plateau/Interfaces/CollectiveOpInterface.h"
#include "plateau/Interfaces/Component.h"
#include "plateau/Interfaces/DifferentiableOpInterface.h"
#include "plateau/Interfaces/FootprintOpInterface.h"
#include "plateau/Interfaces/RoutedOpInterface.h"
#include "llvm/ADT/StringSwitch.h"

#include "plateau/Interfaces/CollectiveOpInterface.cpp.inc"
#include "plateau/Interfaces/ComponentEnums.cpp.inc"
#include "plateau/Interfaces/DifferentiableOpInterface.cpp.inc"
#include "plateau/Interfaces/FootprintOpInterface.cpp.inc"
#include "plateau/Interfaces/RoutedOpInterface.cpp.inc"
