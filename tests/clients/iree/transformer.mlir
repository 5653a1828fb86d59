// Two blocks of a transformer: layer norm, attention with 4 heads under a causal mask, layer norm, a dense layer with tanh-GELU.
// %qkv1: scale 0.125
// %qkv2: scale 0.125
// %out1: scale 0.125
// %out2: scale 0.125
// %up1: scale 0.125
// %up2: scale 0.125
// %down1: scale 0.0625
// %down2: scale 0.0625
func.func private @layer_norm(%x: tensor<24x64xf32>) -> tensor<24x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<64.0> : tensor<24xf32>
  %epsilon = stablehlo.constant dense<1.0e-5> : tensor<24xf32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x64xf32>, tensor<f32>) -> tensor<24xf32>
  %mean = stablehlo.divide %sum, %count : tensor<24xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<24xf32>) -> tensor<24x64xf32>
  %centred = stablehlo.subtract %x, %means : tensor<24x64xf32>
  %square = stablehlo.multiply %centred, %centred : tensor<24x64xf32>
  %squares = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<24x64xf32>, tensor<f32>) -> tensor<24xf32>
  %variance = stablehlo.divide %squares, %count : tensor<24xf32>
  %safe = stablehlo.add %variance, %epsilon : tensor<24xf32>
  %inverse = stablehlo.rsqrt %safe : tensor<24xf32>
  %inverses = stablehlo.broadcast_in_dim %inverse, dims = [0] : (tensor<24xf32>) -> tensor<24x64xf32>
  %result = stablehlo.multiply %centred, %inverses : tensor<24x64xf32>
  return %result : tensor<24x64xf32>
}

func.func private @heads(%x: tensor<24x192xf32>) -> (tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>) {
  %q = stablehlo.slice %x [0:24, 0:64] : (tensor<24x192xf32>) -> tensor<24x64xf32>
  %q_split = stablehlo.reshape %q : (tensor<24x64xf32>) -> tensor<24x4x16xf32>
  %q_heads = stablehlo.transpose %q_split, dims = [1, 0, 2] : (tensor<24x4x16xf32>) -> tensor<4x24x16xf32>
  %k = stablehlo.slice %x [0:24, 64:128] : (tensor<24x192xf32>) -> tensor<24x64xf32>
  %k_split = stablehlo.reshape %k : (tensor<24x64xf32>) -> tensor<24x4x16xf32>
  %k_heads = stablehlo.transpose %k_split, dims = [1, 0, 2] : (tensor<24x4x16xf32>) -> tensor<4x24x16xf32>
  %v = stablehlo.slice %x [0:24, 128:192] : (tensor<24x192xf32>) -> tensor<24x64xf32>
  %v_split = stablehlo.reshape %v : (tensor<24x64xf32>) -> tensor<24x4x16xf32>
  %v_heads = stablehlo.transpose %v_split, dims = [1, 0, 2] : (tensor<24x4x16xf32>) -> tensor<4x24x16xf32>
  return %q_heads, %k_heads, %v_heads : tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>
}

func.func private @attention(%q: tensor<4x24x16xf32>, %k: tensor<4x24x16xf32>, %v: tensor<4x24x16xf32>) -> tensor<24x64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %lowest = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %scale = stablehlo.constant dense<0.25> : tensor<4x24x24xf32>
  %hidden = stablehlo.constant dense<-1.0e9> : tensor<4x24x24xf32>
  %product = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x24x16xf32>, tensor<4x24x16xf32>) -> tensor<4x24x24xf32>
  %score = stablehlo.multiply %product, %scale : tensor<4x24x24xf32>
  %from = stablehlo.iota dim = 1 : tensor<4x24x24xi32>
  %to = stablehlo.iota dim = 2 : tensor<4x24x24xi32>
  %seen = stablehlo.compare GE, %from, %to : (tensor<4x24x24xi32>, tensor<4x24x24xi32>) -> tensor<4x24x24xi1>
  %masked = stablehlo.select %seen, %score, %hidden : tensor<4x24x24xi1>, tensor<4x24x24xf32>
  %largest = stablehlo.reduce(%masked init: %lowest) applies stablehlo.maximum across dimensions = [2] : (tensor<4x24x24xf32>, tensor<f32>) -> tensor<4x24xf32>
  %shift = stablehlo.broadcast_in_dim %largest, dims = [0, 1] : (tensor<4x24xf32>) -> tensor<4x24x24xf32>
  %shifted = stablehlo.subtract %masked, %shift : tensor<4x24x24xf32>
  %exp = stablehlo.exponential %shifted : tensor<4x24x24xf32>
  %sum = stablehlo.reduce(%exp init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x24x24xf32>, tensor<f32>) -> tensor<4x24xf32>
  %norm = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<4x24xf32>) -> tensor<4x24x24xf32>
  %weight = stablehlo.divide %exp, %norm : tensor<4x24x24xf32>
  %mixed = stablehlo.dot_general %weight, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x24x24xf32>, tensor<4x24x16xf32>) -> tensor<4x24x16xf32>
  %back = stablehlo.transpose %mixed, dims = [1, 0, 2] : (tensor<4x24x16xf32>) -> tensor<24x4x16xf32>
  %result = stablehlo.reshape %back : (tensor<24x4x16xf32>) -> tensor<24x64xf32>
  return %result : tensor<24x64xf32>
}

func.func private @gelu(%x: tensor<24x256xf32>) -> tensor<24x256xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<24x256xf32>
  %one = stablehlo.constant dense<1.0> : tensor<24x256xf32>
  %cubic = stablehlo.constant dense<0.044715> : tensor<24x256xf32>
  %factor = stablehlo.constant dense<0.7978845608> : tensor<24x256xf32>
  %x2 = stablehlo.multiply %x, %x : tensor<24x256xf32>
  %x3 = stablehlo.multiply %x2, %x : tensor<24x256xf32>
  %small = stablehlo.multiply %x3, %cubic : tensor<24x256xf32>
  %inner = stablehlo.add %x, %small : tensor<24x256xf32>
  %scaled = stablehlo.multiply %inner, %factor : tensor<24x256xf32>
  %tanh = stablehlo.tanh %scaled : tensor<24x256xf32>
  %plus = stablehlo.add %tanh, %one : tensor<24x256xf32>
  %product = stablehlo.multiply %x, %plus : tensor<24x256xf32>
  %result = stablehlo.multiply %product, %half : tensor<24x256xf32>
  return %result : tensor<24x256xf32>
}

func.func private @block(%x: tensor<24x64xf32>, %qkv: tensor<64x192xf32>, %out: tensor<64x64xf32>, %up: tensor<64x256xf32>, %down: tensor<256x64xf32>) -> tensor<24x64xf32> {
  %n1 = call @layer_norm(%x) : (tensor<24x64xf32>) -> tensor<24x64xf32>
  %all = stablehlo.dot_general %n1, %qkv, contracting_dims = [1] x [0] : (tensor<24x64xf32>, tensor<64x192xf32>) -> tensor<24x192xf32>
  %q, %k, %v = call @heads(%all) : (tensor<24x192xf32>) -> (tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>)
  %mixed = call @attention(%q, %k, %v) : (tensor<4x24x16xf32>, tensor<4x24x16xf32>, tensor<4x24x16xf32>) -> tensor<24x64xf32>
  %projected = stablehlo.dot_general %mixed, %out, contracting_dims = [1] x [0] : (tensor<24x64xf32>, tensor<64x64xf32>) -> tensor<24x64xf32>
  %x1 = stablehlo.add %x, %projected : tensor<24x64xf32>
  %n2 = call @layer_norm(%x1) : (tensor<24x64xf32>) -> tensor<24x64xf32>
  %wide = stablehlo.dot_general %n2, %up, contracting_dims = [1] x [0] : (tensor<24x64xf32>, tensor<64x256xf32>) -> tensor<24x256xf32>
  %active = call @gelu(%wide) : (tensor<24x256xf32>) -> tensor<24x256xf32>
  %narrow = stablehlo.dot_general %active, %down, contracting_dims = [1] x [0] : (tensor<24x256xf32>, tensor<256x64xf32>) -> tensor<24x64xf32>
  %result = stablehlo.add %x1, %narrow : tensor<24x64xf32>
  return %result : tensor<24x64xf32>
}

func.func @main(%x: tensor<24x64xf32>,
    %qkv1: tensor<64x192xf32>, %out1: tensor<64x64xf32>, %up1: tensor<64x256xf32>, %down1: tensor<256x64xf32>,
    %qkv2: tensor<64x192xf32>, %out2: tensor<64x64xf32>, %up2: tensor<64x256xf32>, %down2: tensor<256x64xf32>) -> tensor<24x64xf32> {
  %y = call @block(%x, %qkv1, %out1, %up1, %down1) : (tensor<24x64xf32>, tensor<64x192xf32>, tensor<64x64xf32>, tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<24x64xf32>
  %z = call @block(%y, %qkv2, %out2, %up2, %down2) : (tensor<24x64xf32>, tensor<64x192xf32>, tensor<64x64xf32>, tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<24x64xf32>
  return %z : tensor<24x64xf32>
}
