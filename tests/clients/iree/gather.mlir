// Rows of a table, as an embedding does.
// %index: 0..50
func.func @main(%table: tensor<50x32xf32>, %index: tensor<17x1xi32>) -> tensor<17x32xf32> {
  %rows = "stablehlo.gather"(%table, %index) <{
    dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 32>, indices_are_sorted = false}> : (tensor<50x32xf32>, tensor<17x1xi32>) -> tensor<17x32xf32>
  return %rows : tensor<17x32xf32>
}
