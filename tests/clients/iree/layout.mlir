// What only moves elements: transpose, reverse, pad, concatenate, slice, reshape.
func.func @main(%x: tensor<12x20xf32>, %y: tensor<7x12xf32>) -> (tensor<15x27xf32>, tensor<6x40xf32>) {
  %zero = stablehlo.constant dense<-1.0> : tensor<f32>
  %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<12x20xf32>) -> tensor<20x12xf32>
  %both = stablehlo.concatenate %t, %y, dim = 0 : (tensor<20x12xf32>, tensor<7x12xf32>) -> tensor<27x12xf32>
  %back = stablehlo.transpose %both, dims = [1, 0] : (tensor<27x12xf32>) -> tensor<12x27xf32>
  %reversed = stablehlo.reverse %back, dims = [1] : tensor<12x27xf32>
  %padded = stablehlo.pad %reversed, %zero, low = [1, 0], high = [2, 0], interior = [0, 0] : (tensor<12x27xf32>, tensor<f32>) -> tensor<15x27xf32>
  %shaped = stablehlo.reshape %x : (tensor<12x20xf32>) -> tensor<6x40xf32>
  return %padded, %shaped : tensor<15x27xf32>, tensor<6x40xf32>
}
