// No size is a multiple of a tile.
func.func @main(%a: tensor<67x31xf32>, %b: tensor<31x45xf32>) -> tensor<67x45xf32> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<67x31xf32>, tensor<31x45xf32>) -> tensor<67x45xf32>
  return %c : tensor<67x45xf32>
}
