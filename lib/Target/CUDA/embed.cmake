# Writes the building blocks as strings of Blocks.h. -DOUT=FILE -DFILES=a;b
set(text "#include \"Blocks.h\"\n\nstatic constexpr gptc::cuda::Block blocks[] = {\n")
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} content)
  string(APPEND text "    {\"${name}\", R\"cuh(${content})cuh\"},\n")
endforeach()
string(APPEND text "};\nllvm::ArrayRef<gptc::cuda::Block> gptc::cuda::allBlocks() { return blocks; }\n")
file(WRITE ${OUT} "${text}")
