//===----------------------------------------------------------------------===//
// Part of Plateau, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// Puts the calls of a program together.
//===----------------------------------------------------------------------===//

#include "FunctionConversion.h"
#include "mlir/IR/Matchers.h"
#include "plateau/Interfaces/CollectiveOpInterface.h"

using namespace mlir;
using namespace mlir::plateau;

static Attribute add(SmallVector<Value> &list, Value value, function_ref<Attribute(int64_t)> make) {
  auto it = llvm::find(list, value);
  int64_t index = it - list.begin();
  if (it == list.end())
    list.push_back(value);
  return make(index);
}

Attribute Call::readValue(Value content) {
  return add(reads, content, [&](int64_t index) { return sched::ReadAttr::get(op->getContext(), index); });
}

Attribute Call::addTable(Value content) {
  return add(tables, content, [&](int64_t index) { return sched::TableAddressAttr::get(op->getContext(), index); });
}

Attribute Call::writePlace(Value place, Value result) {
  writes.push_back(place);
  results.push_back(result);
  return sched::WriteAttr::get(op->getContext(), writes.size() - 1);
}

Attribute Call::read(Value tensor) { return tensor ? readValue(conversion.getContent(tensor)) : conversion.null(); }

Attribute Call::write(Value result) {
  return writePlace(conversion.getPlace(conversion.buffers.getView(result), conversion.getMemory(result)), result);
}

Attribute Call::out(Value result) {
  if (!result)
    return conversion.null();
  conversion.allocate(op, result);
  return write(result);
}

Attribute Call::update(Value result) {
  read(result);
  return write(result);
}

Attribute Call::plan(Value plan) {
  auto [host, device] = conversion.planTables.at(plan);
  readValue(device);
  return addTable(host);
}

FailureOr<Attribute> Call::rows(Value tensor) {
  auto [plan, index] = conversion.getPlanRows(tensor);
  if (!plan)
    return conversion.i64(cast<RankedTensorType>(tensor.getType()).getDimSize(0));
  FailureOr<Attribute> number = index ? this->index(index) : Attribute();
  if (failed(number))
    return failure();
  auto table = cast<sched::TableAddressAttr>(addTable(conversion.planTables.at(plan).first));
  return Attribute(sched::RowsAttr::get(op->getContext(), table.getIndex(), *number));
}

FailureOr<Attribute> Call::iteration(Value index) { return index ? this->index(index) : conversion.i64(0); }

FailureOr<Attribute> Call::index(Value number) {
  APInt constant;
  if (matchPattern(number, m_ConstantInt(&constant)))
    return conversion.i64(constant.getSExtValue());
  auto it = conversion.indices.find(number);
  auto loop = dyn_cast<sched::LoopOp>(conversion.builder.getInsertionBlock()->getParentOp());
  if (it == conversion.indices.end() || !loop || loop.getCounter() != it->second.counter)
    return op->emitOpError("takes a number that is neither constant nor the index of the innermost loop around it");
  Value &table = conversion.indexTables[number];
  if (!table) {
    SmallVector<int64_t> numbers;
    for (int64_t trip = 0, trips = loop.getTripCount(); trip < trips; ++trip)
      numbers.push_back(it->second.from + trip * it->second.step);
    OpBuilder before(loop);
    auto elements = RankedTensorType::get({static_cast<int64_t>(numbers.size()), 1}, before.getI64Type());
    table =
        sched::TableOp::create(before, op->getLoc(), MemRefType::get(elements.getShape(), elements.getElementType()),
                               DenseIntElementsAttr::get(elements, numbers));
  }
  return sched::CellAttr::get(op->getContext(), cast<sched::TableAddressAttr>(addTable(table)).getIndex(), 0, 0);
}

void Call::addScratch(SmallVectorImpl<Attribute> &arguments, int64_t bytes, bool isWorkspace) {
  if (bytes == 0) {
    arguments.append({conversion.null(), conversion.i64(0)});
    return;
  }
  auto type = MemRefType::get({bytes}, conversion.builder.getI8Type());
  auto slot = sched::SlotOp::create(conversion.builder, op->getLoc(), type, sched::Space::Device,
                                    conversion.getTag(op, isWorkspace));
  slot.setScratch(true);
  auto place = cast<sched::WriteAttr>(writePlace(slot));
  arguments.append({place, sched::BytesAttr::get(op->getContext(), place.getIndex())});
}

void Call::emit(StringRef callee, SmallVector<Attribute> arguments) {
  OpBuilder &builder = conversion.builder;
  Location loc = op->getLoc();
  if (auto footprint = dyn_cast<FootprintOpInterface>(op))
    if (int64_t bytes = footprint.getWorkspaceBytes()) {
      auto type = MemRefType::get({bytes}, builder.getI8Type());
      Value slot =
          sched::SlotOp::create(builder, loc, type, sched::Space::Device, conversion.getTag(op, /*isWorkspace=*/true));
      arguments.append({writePlace(slot), conversion.i64(bytes)});
    }
  ArrayAttr args = builder.getArrayAttr(arguments);
  sched::TagAttr tag = conversion.getTag(op);
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    FlatSymbolRefAttr grid = collective.getCollectiveGrid();
    int64_t dimensions = Grid::lookup(op, grid)->shape.size();
    created = sched::CollectiveOp::create(builder, loc, callee, args, grid.getValue(),
                                          collective.getCollectiveAxes(dimensions), conversion.collectives++,
                                          sched::Lane::Compute, conversion.getStage(op),
                                          /*waits=*/ValueRange(), reads, tables, writes, tag);
  } else {
    created = sched::LaunchOp::create(builder, loc, callee, args, sched::Lane::Compute, conversion.getStage(op),
                                      /*waits=*/ValueRange(), reads, tables, writes, tag);
  }
  for (auto [index, result] : llvm::enumerate(results))
    if (result)
      conversion.setContent(result, created->getResult(1 + index));
}
