// Several updates may go to one row.
// %index: 0..10
func.func @main(%table: tensor<10x16xf32>, %index: tensor<25x1xi32>, %update: tensor<25x16xf32>) -> tensor<10x16xf32> {
  %sum = "stablehlo.scatter"(%table, %index, %update) <{
    scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>,
    indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }) : (tensor<10x16xf32>, tensor<25x1xi32>, tensor<25x16xf32>) -> tensor<10x16xf32>
  return %sum : tensor<10x16xf32>
}
