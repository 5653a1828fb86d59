// %row: 0..10
// modes: streams
func.func @main(%x: tensor<16x24xf32>, %new: tensor<3x24xf32>, %row: tensor<i32>) -> (tensor<4x24xf32>, tensor<16x24xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %window = stablehlo.dynamic_slice %x, %row, %zero, sizes = [4, 24] : (tensor<16x24xf32>, tensor<i32>, tensor<i32>) -> tensor<4x24xf32>
  %updated = stablehlo.dynamic_update_slice %x, %new, %row, %zero : (tensor<16x24xf32>, tensor<3x24xf32>, tensor<i32>, tensor<i32>) -> tensor<16x24xf32>
  return %window, %updated : tensor<4x24xf32>, tensor<16x24xf32>
}
