// SPDX-License-Identifier: Apache-2.0
//
// Which command the first word of a line names.
module text_command
  import wc_pkg::*;
(
    input  logic [127:0] view,
    input  logic [4:0]   word,    // bytes of the word; 16: more than 15
    input  logic         blank,   // the line begins with a blank: no command
    output command_t     named,
    output op_t          named_op
);
  always_comb begin
    named = C_UNKNOWN;
    named_op = OP_ERROR;
    case (word)
      5'd2: begin
        if (view[7:0] == "m") begin
          case (view[15:8])
            "n": named = C_NOOP;
            "g", "s", "d", "a", "e": named = C_STOP;
            default: ;
          endcase
        end
      end
      5'd3:
      case (view[23:0])
        {"t", "e", "g"}: begin named = C_GET; named_op = OP_GET; end
        {"t", "e", "s"}: begin named = C_STORE; named_op = OP_SET; end
        {"d", "d", "a"}: begin named = C_STORE; named_op = OP_ADD; end
        {"s", "a", "c"}: begin named = C_CAS; named_op = OP_SET; end
        {"t", "a", "g"}: begin named = C_GAT; named_op = OP_GET; end
        {"u", "r", "l"}: named = C_UNSUPPORTED;
        default: ;
      endcase
      5'd4:
      case (view[31:0])
        {"s", "t", "e", "g"}: begin named = C_GET; named_op = OP_GET; end
        {"s", "t", "a", "g"}: begin named = C_GAT; named_op = OP_GET; end
        {"r", "c", "n", "i"}: begin named = C_DELTA; named_op = OP_INCR; end
        {"r", "c", "e", "d"}: begin named = C_DELTA; named_op = OP_DECR; end
        {"t", "i", "u", "q"}: named = C_QUIT;
        default: ;
      endcase
      5'd5:
      case (view[39:0])
        {"h", "c", "u", "o", "t"}: begin named = C_TOUCH; named_op = OP_TOUCH; end
        {"s", "t", "a", "t", "s"}, {"h", "c", "t", "a", "w"}, {"s", "b", "a", "l", "s"}:
          named = C_UNSUPPORTED;
        default: ;
      endcase
      5'd6:
      case (view[47:0])
        {"e", "t", "e", "l", "e", "d"}: begin named = C_DELETE; named_op = OP_DELETE; end
        {"d", "n", "e", "p", "p", "a"}: begin named = C_STORE; named_op = OP_APPEND; end
        default: ;
      endcase
      5'd7:
      case (view[55:0])
        {"e", "c", "a", "l", "p", "e", "r"}: begin named = C_STORE; named_op = OP_REPLACE; end
        {"d", "n", "e", "p", "e", "r", "p"}: begin named = C_STORE; named_op = OP_PREPEND; end
        {"n", "o", "i", "s", "r", "e", "v"}: named = C_VERSION;
        default: ;
      endcase
      5'd8:
      case (view[63:0])
        {"n", "w", "o", "d", "t", "u", "h", "s"}, {"e", "r", "o", "t", "s", "t", "x", "e"}:
          named = C_UNSUPPORTED;
        default: ;
      endcase
      5'd9:
      case (view[71:0])
        {"l", "l", "a", "_", "h", "s", "u", "l", "f"}: begin named = C_FLUSH; named_op = OP_FLUSH; end
        {"y", "t", "i", "s", "o", "b", "r", "e", "v"}: begin named = C_VERBOSITY; named_op = OP_OK; end
        {"e", "m", "i", "t", "g", "u", "b", "e", "d"}: named = C_UNSUPPORTED;
        default: ;
      endcase
      5'd11: if (view[87:0] == {"r", "e", "l", "w", "a", "r", "c", "_", "u", "r", "l"}) named = C_UNSUPPORTED;
      5'd13:
      if (view[103:0] == {"s", "t", "r", "e", "c", "_", "h", "s", "e", "r", "f", "e", "r"})
        named = C_UNSUPPORTED;
      5'd14:
      if (view[111:0] == {"t", "i", "m", "i", "l", "m", "e", "m", "_", "e", "h", "c", "a", "c"})
        named = C_UNSUPPORTED;
      default: ;
    endcase
    if (blank) named = C_UNKNOWN;
  end
endmodule
