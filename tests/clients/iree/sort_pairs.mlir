// Keys in falling order with the values that belong to them; the five first are the five largest.
func.func @main(%key: tensor<64xf32>) -> (tensor<5xf32>, tensor<5xi32>) {
  %value = stablehlo.iota dim = 0 : tensor<64xi32>
  %keys, %values = "stablehlo.sort"(%key, %value) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
      %more = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
  }) : (tensor<64xf32>, tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>)
  %top = stablehlo.slice %keys [0:5] : (tensor<64xf32>) -> tensor<5xf32>
  %place = stablehlo.slice %values [0:5] : (tensor<64xi32>) -> tensor<5xi32>
  return %top, %place : tensor<5xf32>, tensor<5xi32>
}
