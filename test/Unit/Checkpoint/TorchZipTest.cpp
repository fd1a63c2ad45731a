//===- TorchZipTest.cpp - Legal and broken files of torch.save ------------===//

#include "TorchFiles.h"

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

namespace {
class Torch : public ::testing::Test {
protected:
  void refuse(std::string_view bytes,
              std::initializer_list<std::string_view> parts) {
    expectRefused(folder.write("ckpt.pt", bytes), parts);
  }
  void refusePickle(std::string_view pickle,
                    std::initializer_list<std::string_view> parts) {
    TorchBuilder builder;
    builder.pickle = pickle;
    refuse(builder.file(), parts);
  }
  void refuseTensor(std::string_view member,
                    std::initializer_list<std::string_view> parts) {
    refusePickle(stateDict({std::string(member)}), parts);
  }
  Expected<Checkpoint> open(std::string_view bytes) {
    return Checkpoint::open(folder.write("ckpt.pt", bytes));
  }
  Expected<Checkpoint> openPickle(std::string_view pickle) {
    TorchBuilder builder;
    builder.pickle = pickle;
    return open(builder.file());
  }

  TemporaryFolder folder;
};
} // namespace

static std::vector<float> valuesOf(const Expected<Checkpoint> &checkpoint,
                                   std::string_view name, size_t count) {
  std::vector<float> values(count);
  const TensorInfo *tensor = checkpoint ? checkpoint->find(name) : nullptr;
  EXPECT_TRUE(tensor) << (checkpoint ? "no tensor"
                                     : checkpoint.error().message);
  if (tensor)
    EXPECT_TRUE(
        dequantizeRow(tensor->storage, tensor->data, count, values.data()));
  return values;
}

TEST_F(Torch, StateDict) {
  auto file = open(TorchBuilder().file());
  EXPECT_EQ(valuesOf(file, "w", 2), (std::vector<float>{1, 2}));
  EXPECT_EQ(file->kind(), Kind::TorchZip);
  EXPECT_TRUE(file->config().isNull());

  // Without the 64-bit records, and with a comment behind.
  EXPECT_TRUE(open(zip(TorchBuilder().members())));
  EXPECT_TRUE(open(zip(TorchBuilder().members(), true, "PK\x05\x06 no end")));
  // A bare state dict takes the config.json beside it.
  folder.write("config.json", R"({"n_head": 3})");
  EXPECT_EQ(*open(TorchBuilder().file())->configReader().integer("n_head"), 3);
}

TEST_F(Torch, CheckpointWithHyperparameters) {
  std::string w = tensor("_orig_mod.w", "F", "0", 2, "", "[2]", "[1]");
  std::string loss = tensor("best_val_loss", "F", "0", 2, "1", "[]", "[]");
  std::string args =
      text("model_args") +
      dict({text("n_head") + "K\x03",
            text("dropout") + "G" +
                std::string("\x3f\xb9\x99\x99\x99\x99\x99\x9a", 8),
            text("bias") + "\x88", text("init") + text("x"), text("none") + "N",
            text("big") + wide(uint64_t(-5)), text("list") + "](K\1K\2e"});
  std::string optimizer =
      text("optimizer") +
      dict({text("state") + dict({std::string("K\0", 2) +
                                  dict({tensor("exp_avg", "F", "gone", 9, "",
                                               "[9]", "[1]")})})});
  folder.write("config.json", R"({"n_head": 7})");
  auto file =
      openPickle(stateDict({text("model") + dict({w}), optimizer, args, loss}));
  EXPECT_EQ(valuesOf(file, "w", 2), (std::vector<float>{1, 2}));
  ASSERT_EQ(file->tensors().size(), 1u);
  json::Reader config = *file->configReader().child("model_args");
  EXPECT_EQ(*config.integer("n_head"), 3);
  EXPECT_EQ(*config.real("dropout"), 0.1);
  EXPECT_TRUE(*config.boolean("bias"));
  EXPECT_EQ(*config.string("init"), "x");
  EXPECT_FALSE(config.has("none"));
  EXPECT_EQ(*config.integer("big"), -5);
  EXPECT_EQ((*config.array("list"))->size(), 2u);
  EXPECT_FALSE(file->configReader().has("best_val_loss"));
}

TEST_F(Torch, OtherSpellings) {
  // Protocol 4: frames, short strings, memoised globals; an attribute of the
  // dict; a parameter; a tied tensor; a wrapper's prefix.
  auto brief = [](std::string_view value) {
    return "\x8c" + littleEndian(value.size(), 1) + std::string(value);
  };
  std::string id =
      tuple(brief("storage") + brief("torch") + brief("HalfStorage") +
            "\x93\x94" + brief("0") + brief("cpu") + "K\4");
  std::string tensor =
      rebuild +
      tuple(id + "QK\2K\1K\1\x86K\5K\1\x86\x89" + orderedDict + ")R") + "R";
  std::string parameter = global("torch._utils", "_rebuild_parameter") +
                          tuple(tensor + "\x88" + orderedDict + ")R") + "R\x94";
  auto file = openPickle("\x80\x04\x95" + u64(9) + orderedDict + ")R(" +
                         brief("module.a") + parameter + brief("module.b") +
                         "h\1u}" + text("_metadata") + "}sb.");
  EXPECT_EQ(valuesOf(file, "a", 1), valuesOf(file, "b", 1));
  EXPECT_EQ(file->find("a")->shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(file->find("a")->storage, Storage::F16);
  EXPECT_EQ(file->find("a")->data, file->find("b")->data);
}

TEST_F(Torch, OtherGlobals) {
  for (auto [module, name] :
       {std::pair("posix", "system"), std::pair("builtins", "eval"),
        std::pair("torch", "load"), std::pair("collections", "OrderedDict.x"),
        std::pair("torch", "ComplexFloatStorage"), std::pair("", "")})
    refusePickle(pickled(global(module, name) + text("ls") + "\x85R"),
                 {"'m/data.pkl': byte 2", "global '" + std::string(module) +
                                              "." + name + "' is refused"});
  refusePickle(pickled(text("posix") + text("system") + "\x93)R"),
               {"global 'posix.system' is refused"});
  // Known ones in a place that is not theirs.
  refusePickle(pickled(global("torch", "FloatStorage") + ")R"),
               {"a call of torch.FloatStorage"});
  refusePickle(pickled(orderedDict + "]\x85R"), {"with arguments"});
  refusePickle(pickled(rebuild + ")R"), {"other arguments"});
  refusePickle(pickled(rebuild + "}R"),
               {"got torch._utils._rebuild_tensor_v2"});
  refusePickle(pickled("K\1)R"), {"got integer 1 and a tuple of 0"});
  refusePickle(pickled("]}b"), {"attributes of a dict, got those of a list"});
  refusePickle(pickled(tuple(text("storage")) + "Q"), {"persistent id"});
  refusePickle(pickled(text("file:///etc/passwd") + "Q"), {"persistent id"});
}

TEST_F(Torch, BrokenPickles) {
  refusePickle("", {"byte 0", "expected 1 more bytes, got 0"});
  refusePickle("\x80\x02", {"expected 1 more bytes"});
  refusePickle("\x80\x01N.", {"protocol 2 to 5, got 1"});
  refusePickle("\x80\x06N.", {"protocol 2 to 5, got 6"});
  refusePickle(pickled(""), {"a value on the stack"});
  refusePickle(pickled("NN"), {"one value"});
  refusePickle(pickled("N") + "N", {"one value"});
  refusePickle(pickled("(N"), {"one value"});
  refusePickle(pickled("N(a"), {"a value on the stack"});
  refusePickle(pickled("t"), {"expected a mark"});
  refusePickle(pickled("e"), {"expected a mark"});
  refusePickle(pickled("Na"), {"a value on the stack"});
  refusePickle(pickled("NNa"), {"expected a list to fill, got None"});
  refusePickle(pickled("](NNu"), {"expected a dict to fill, got a list of 0"});
  refusePickle(pickled("}(Nu"), {"a value for each key"});
  refusePickle(pickled(std::string("h\0", 2)), {"one of 0 kept values, got 0"});
  refusePickle(pickled("Nr" + u32(4000000000)), {"at most 0, got 4000000000"});
  refusePickle(pickled(std::string("q\0", 2)), {"a value on the stack"});
  refusePickle(pickled("X" + u32(0xffffffff) + "a"), {"4294967295 more bytes"});
  refusePickle(pickled("\x8d" + u64(~uint64_t(0)) + "a"),
               {"18446744073709551615 more bytes"});
  refusePickle(pickled(text("\xff")), {"UTF-8", "'\\xff'"});
  refusePickle(pickled("\x8a\x09" + u64(0) + u64(0)), {"at most 8 bytes"});
  refusePickle(pickled("ccollections"), {"expected a line"});
  for (char opcode :
       {'i', 'o', '\x81', 'S', 'I', 'P', '\x82', 'l', '0', '\xff'})
    refusePickle(pickled(std::string(1, opcode)), {"byte 2", "is refused"});
  refusePickle(pickled("N"), {"expected a dict", "got None"});
  refusePickle(pickled("}"), {"state dict with tensors", "got none"});
}

// A pickle may say in a few bytes what takes gigabytes written out.
TEST_F(Torch, Bombs) {
  std::string w = tensor("w", "F", "0", 2, "", "[2]", "[1]");
  // Each list holds the one before it twice: 2^40 values.
  std::string tower = "}\x94";
  for (int i = 0; i < 40; ++i) {
    std::string last = "h" + littleEndian(static_cast<uint64_t>(i), 1);
    tower = tower + "](" + last + last + "e\x94";
  }
  tower = "(" + tower + "t"; // one value
  refusePickle(stateDict({text("model") + dict({w}), text("config") + tower}),
               {"plain values beside the state dict"});
  // A list in itself; 100,000 lists in each other.
  refusePickle(
      stateDict({text("model") + dict({w}),
                 text("config") + "]\x94h" + std::string(1, '\0') + "a"}),
      {"plain values beside the state dict", "64 deep"});
  std::string deep(100000, ']');
  refusePickle(stateDict({text("model") + dict({w}),
                          text("config") + deep + std::string(99999, 'a')}),
               {"64 deep"});
  // One string of 1 MB many times over.
  std::string many = "](" + text(std::string(1 << 20, 'x')) + "\x94";
  for (int i = 0; i < 100; ++i)
    many += std::string("h\0", 2);
  refusePickle(
      stateDict({text("model") + dict({w}), text("config") + many + "e"}),
      {"8388608 bytes"});
  refusePickle(pickled("](" + std::string(3 << 20, 'N') + "e"), {"opcodes"});
  // A tensor's name of 1 MB many times: the second is refused before the list
  // of tensors holds them all.
  std::string named =
      "}(" + text(std::string(1 << 20, 'n')) + "\x94" + w.substr(6) + "\x94";
  for (int i = 0; i < 100; ++i)
    named += std::string("h\0h\1", 4);
  refusePickle(pickled(named + "u"), {"bytes): duplicate name"});
  auto opened = openPickle(pickled(named + "u"));
  EXPECT_EQ(opened.error().message.find("also in"), std::string::npos);
}

TEST_F(Torch, Tensors) {
  refuseTensor(tensor("w", "F", "1", 2, "", "[2]", "[1]"),
               {"tensor 'w'", "'m/data/1'", "no such entry"});
  refuseTensor(tensor("w", "F", "../data/0", 2, "", "[2]", "[1]"),
               {"tensor 'w'", "no such entry"});
  refuseTensor(
      tensor("w", "F", "0", 3, "", "[2]", "[1]"),
      {"tensor 'w'", "expected 12 bytes for 3 elements of f32, got 8"});
  refuseTensor(tensor("w", "F", "0", uint64_t(-1), "", "[2]", "[1]"),
               {"tensor 'w'", "negative"});
  refuseTensor(tensor("w", "F", "0", uint64_t(1) << 62, "", "[2]", "[1]"),
               {"tensor 'w'", "2^63 bytes"});
  refuseTensor(tensor("w", "F", "0", 2, "", "[3]", "[1]"),
               {"tensor 'w'", "expected 12 bytes from element 0"});
  for (const char *offset : {"1", "3", "-1", "9223372036854775807"})
    refuseTensor(tensor("w", "F", "0", 2, offset, "[2]", "[1]"),
                 {"tensor 'w'", "from element " + std::string(offset)});
  refuseTensor(tensor("w", "F", "0", 2, "", "[-2]", "[1]"),
               {"tensor 'w'", "negative dimension"});
  refuseTensor(
      tensor("w", "F", "0", 2, "", "[4294967296,4294967296]", "[4294967296,1]"),
      {"tensor 'w'", "2^63 bytes"});
  refuseTensor(tensor("w", "F", "0", 2, "", "[1,1,1,1,1,1,1,1,2]",
                      "[1,1,1,1,1,1,1,1,1]"),
               {"tensor 'w'", "at most 8 dimensions, got 9"});
  refuseTensor(tensor("w", "F", "0", 2, "", "[1,2]", "[1]"),
               {"other arguments"});
  refuseTensor(tensor("w", "F", "0", 2, "", "[2]", "[2]"),
               {"tensor 'w'", "contiguous", "strides [2]", ".contiguous()"});
  refuseTensor(tensor("w", "F", "0", 2, "", "[2]", "[0]"), {"contiguous"});
  refuseTensor(tensor("", "F", "0", 2, "", "[2]", "[1]"), {"expected a name"});
  std::string w = tensor("w", "F", "0", 2, "", "[2]", "[1]");
  refusePickle(stateDict({w, w}), {"tensor 'w'", "duplicate name"});
  refusePickle(stateDict({"K\1" + w.substr(6)}),
               {"names of tensors, got integer 1"});
}

// Column-major would read as another matrix.
TEST_F(Torch, TransposedTensor) {
  TorchBuilder builder;
  builder.data = std::string(24, '\0');
  builder.pickle = stateDict({tensor("w", "F", "0", 6, "", "[2,3]", "[1,2]")});
  refuse(builder.file(), {"tensor 'w'", "[2, 3] with strides [1, 2]"});
  builder.pickle =
      stateDict({tensor("w", "F", "0", 6, "", "[1,2,3]", "[9,3,1]"),
                 tensor("none", "F", "0", 6, "6", "[0,3]", "[7,7]")});
  EXPECT_TRUE(open(builder.file()));
}

TEST_F(Torch, Archives) {
  TorchBuilder builder;
  builder.byteOrder = "big";
  refuse(builder.file(), {"little-endian", "'big'"});
  builder = {};
  builder.more = {{.name = "m/constants.pkl"}};
  refuse(builder.file(), {"TorchScript"});
  builder.more = {{.name = "n/data.pkl"}};
  refuse(builder.file(), {"one entry", "'n/data.pkl'"});
  refuse(zip({{.name = "a.npy", .data = "1234"}}), {"FOLDER/data.pkl"});
  refuse(zip({{.name = "data.pkl", .data = builder.pickle}}),
         {"FOLDER/data.pkl"});
}

TEST_F(Torch, ZipEntries) {
  auto with = [](ZipMember changed) {
    std::vector<ZipMember> members = TorchBuilder().members();
    changed.name = "m/data/0";
    if (changed.localName.empty())
      changed.localName = changed.name;
    if (changed.data.empty())
      changed.data = members[2].data;
    members[2] = changed;
    return zip(members);
  };
  EXPECT_TRUE(open(with({})));
  EXPECT_TRUE(open(with({.padding = "ZZZZZZZ"})));
  refuse(with({.method = 8}), {"entry 'm/data/0'", "compression method 8"});
  refuse(with({.listedMethod = 8}), {"'m/data/0'", "compression method 8"});
  refuse(with({.method = 8, .listedMethod = 0}), {"'m/data/0'", "method 8"});
  refuse(with({.flags = 1}), {"entry 'm/data/0'", "encrypted"});
  refuse(with({.size = 9}), {"'m/data/0'", "expected 9 stored bytes, got 8"});
  refuse(with({.size = 4000, .stored = 4000}),
         {"'m/data/0'", "expected 4000 bytes", "truncated"});
  refuse(with({.header = 0}), {"'m/data/0'", "another name"});
  refuse(with({.header = 1}), {"'m/data/0'", "its header"});
  refuse(with({.header = 0xfffffffe}), {"'m/data/0'", "offset 4294967294"});
  refuse(with({.localName = "m/data/1"}), {"'m/data/0'", "another name"});
  // The local header says what the directory says.
  refuse(with({.flags = 1, .listedFlags = 0}), {"'m/data/0'", "encrypted"});
  refuse(with({.listedFlags = 1}), {"'m/data/0'", "encrypted"});
  for (uint16_t flag : {6, 13}) {
    refuse(with({.flags = uint16_t(1 << flag)}), {"'m/data/0'", "encrypted"});
    refuse(with({.flags = uint16_t(1 << flag), .listedFlags = 0}),
           {"'m/data/0'", "encrypted"});
  }
  refuse(with({.flags = 1 << 5}), {"'m/data/0'", "a patch"});
  refuse(with({.disk = 1}), {"'m/data/0'", "one part of several"});
  for (uint64_t wrong : {0, 4, 9}) {
    refuse(with({.localSize = wrong}),
           {"'m/data/0'", "expected 8 bytes as in the directory, got a header "
                          "with " +
                              std::to_string(wrong)});
    refuse(with({.localStored = wrong}), {"'m/data/0'", "as in the directory"});
  }
  // But where sizes follow the data, they may be left out.
  EXPECT_TRUE(open(with({.flags = 8, .localSize = 0, .localStored = 0})));
  EXPECT_TRUE(open(with({.flags = 8, .listedFlags = 0, .localSize = 0})));
  EXPECT_TRUE(open(with({.flags = 8})));
  refuse(with({.flags = 8, .localSize = 4}), {"'m/data/0'", "as in the"});
  // In 64 bits, in its extra field, before other ones or behind them.
  auto local64 = [&](std::string padding) {
    return with({.localSize = 0xffffffff,
                 .localStored = 0xffffffff,
                 .padding = padding});
  };
  std::string field = u16(1) + u16(16) + u64(8) + u64(8),
              other = u16(7) + u16(0);
  EXPECT_TRUE(open(local64(field)));
  EXPECT_TRUE(open(local64(other + field + other)));
  refuse(local64(""), {"'m/data/0'", "a zip64 field"});
  refuse(local64(u16(1) + u16(16) + u64(8) + u64(9)), {"got a header with 9"});
  // Ones in 32 bits: the size stands in 64 bits, and may be anything.
  auto large = [&](std::string extra) {
    return with({.size = 0xffffffff, .stored = 0xffffffff, .extra = extra});
  };
  EXPECT_TRUE(
      open(large(u16(7) + u16(1) + "x" + u16(1) + u16(16) + u64(8) + u64(8))));
  refuse(large(""), {"'m/data/0'", "a zip64 field"});
  refuse(large(u16(1) + u16(8) + u64(8)), {"'m/data/0'", "too short"});
  refuse(large(u16(1) + u16(99) + u64(8)), {"'m/data/0'", "a zip64 field"});
  refuse(large(u16(1) + u16(16) + u64(~uint64_t(0)) + u64(~uint64_t(0))),
         {"'m/data/0'", "expected 18446744073709551615 bytes"});
  // Twice, and an entry that begins in the data of another.
  TorchBuilder builder;
  builder.more = {{.name = "m/data/0", .data = "12345678"}};
  refuse(builder.file(), {"entry 'm/data/0'", "duplicate name"});
  std::string inner = "PK\x03\x04" + std::string(14, '\0') + u32(4) + u32(4) +
                      u16(8) + u16(0) + "m/data/1" + "1234";
  builder.more = {{.name = "m/x", .data = inner},
                  {.name = "m/data/1", .data = "1234"}};
  std::string whole = builder.file();
  size_t at = whole.find(inner);
  builder.more[1].header = at;
  refuse(builder.file(), {"entry 'm/data/1'", "overlap", "'m/x'"});
}

TEST_F(Torch, ZipEnds) {
  std::string good = TorchBuilder().file();
  // The last bytes: 56 + 20 of the 64-bit end, 22 of the other.
  auto changed = [&](size_t fromEnd, std::string_view bytes) {
    std::string file = good;
    file.replace(file.size() - fromEnd, bytes.size(), bytes);
    return file;
  };
  refuse(changed(22, "PKxx"), {"expected a directory at the end, got none"});
  refuse(changed(22 - 4, u16(1)), {"one part of several"});
  refuse(changed(22 - 8, u16(2)), {"one part of several"});
  refuse(changed(42 - 4, u32(1)), {"one part of several"});
  refuse(changed(42 - 16, u32(2)), {"one part of several"});
  refuse(changed(98 - 16, u32(1)), {"one part of several"});
  refuse(changed(98 - 20, u32(1)), {"one part of several"});
  refuse(changed(98 - 24, u64(2)), {"one part of several"});
  refuse(changed(22 - 8, u16(4) + u16(4)), {"both end records"});
  refuse(changed(42 - 8, u64(~uint64_t(0))), {"zip64 end record"});
  refuse(changed(42 - 8, u64(0)), {"zip64 end record"});
  std::string many = u64(uint64_t(1) << 63);
  refuse(changed(98 - 24, many + many), {"both end records"});
  for (size_t field : {40, 48})
    refuse(changed(98 - field, many), {"both end records"});
  // All ones below let the 64-bit fields say anything.
  auto both = [&](size_t wide, uint64_t value, size_t narrow, size_t bytes) {
    // A count stands twice: of this file, and of all.
    std::string file = wide == 32 ? changed(98 - 24, u64(value) + u64(value))
                                  : changed(98 - wide, u64(value));
    size_t first = narrow == 10 ? 8 : narrow, all = bytes + narrow - first;
    file.replace(file.size() - 22 + first, all, std::string(all, '\xff'));
    return file;
  };
  refuse(both(32, uint64_t(1) << 63, 10, 2),
         {"at most", "9223372036854775808"});
  refuse(both(40, ~uint64_t(0), 12, 4), {"18446744073709551615 bytes from"});
  refuse(both(48, ~uint64_t(0), 16, 4), {"from 18446744073709551615 on"});
  refuse(both(32, 2, 10, 2), {"directory of 2 entries to end at"});
  refuse(both(32, 4, 10, 2), {"at most 3 entries", "got 4"});
  std::string file = changed(98 - 48, u64(1));
  refuse(file.replace(file.size() - 6, 4, 4, '\xff'),
         {"expected 3 entries in the directory, got 0"});
}

// A good file cut anywhere is refused, and changed anywhere does not crash.
TEST_F(Torch, TruncationAndDamage) {
  std::string good = TorchBuilder().file();
  ASSERT_TRUE(open(good));
  for (size_t size = 0; size < good.size(); size += size % 3 + 1)
    EXPECT_FALSE(open(good.substr(0, size))) << size;
  for (size_t i = 0; i < good.size(); i += i % 3 + 1) {
    std::string file = good;
    file[i] = static_cast<char>(file[i] ^ (i % 2 ? 0xff : 0x08));
    if (auto opened = open(file))
      for (const TensorInfo &tensor : opened->tensors())
        EXPECT_LE(tensor.offset + tensor.bytes, file.size());
  }
}
