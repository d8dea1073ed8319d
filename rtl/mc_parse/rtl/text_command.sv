// SPDX-License-Identifier: Apache-2.0
//
// Which command a piece names, if it is the first word of its line. Of a word of 8 bytes and more its first 8 are seen, then those
// after them. Combinational.
module text_command
  import wc_pkg::*;
(
    input  piece_t     piece,
    output command_t   named,
    output op_t        named_op,
    output long_t      begins,     // what 8 bytes can become
    output logic [7:0] completes   // what these become a command with, if they came before
);
  always_comb begin
    named = C_UNKNOWN;
    named_op = OP_ERROR;
    case (piece.len)
      4'd2: begin
        if (piece.data[7:0] == "m") begin
          case (piece.data[15:8])
            "n": named = C_NOOP;
            "g", "s", "d", "a", "e": named = C_STOP;
            default: ;
          endcase
        end
      end
      4'd3:
      case (piece.data[23:0])
        {"t", "e", "g"}: begin named = C_GET; named_op = OP_GET; end
        {"t", "e", "s"}: begin named = C_STORE; named_op = OP_SET; end
        {"d", "d", "a"}: begin named = C_STORE; named_op = OP_ADD; end
        {"s", "a", "c"}: begin named = C_CAS; named_op = OP_SET; end
        {"t", "a", "g"}: begin named = C_GAT; named_op = OP_GET; end
        {"u", "r", "l"}: named = C_UNSUPPORTED;
        default: ;
      endcase
      4'd4:
      case (piece.data[31:0])
        {"s", "t", "e", "g"}: begin named = C_GET; named_op = OP_GET; end
        {"s", "t", "a", "g"}: begin named = C_GAT; named_op = OP_GET; end
        {"r", "c", "n", "i"}: begin named = C_DELTA; named_op = OP_INCR; end
        {"r", "c", "e", "d"}: begin named = C_DELTA; named_op = OP_DECR; end
        {"t", "i", "u", "q"}: named = C_QUIT;
        default: ;
      endcase
      4'd5:
      case (piece.data[39:0])
        {"h", "c", "u", "o", "t"}: begin named = C_TOUCH; named_op = OP_TOUCH; end
        {"s", "t", "a", "t", "s"}, {"h", "c", "t", "a", "w"}, {"s", "b", "a", "l", "s"}:
          named = C_UNSUPPORTED;
        default: ;
      endcase
      4'd6:
      case (piece.data[47:0])
        {"e", "t", "e", "l", "e", "d"}: begin named = C_DELETE; named_op = OP_DELETE; end
        {"d", "n", "e", "p", "p", "a"}: begin named = C_STORE; named_op = OP_APPEND; end
        default: ;
      endcase
      4'd7:
      case (piece.data[55:0])
        {"e", "c", "a", "l", "p", "e", "r"}: begin named = C_STORE; named_op = OP_REPLACE; end
        {"d", "n", "e", "p", "e", "r", "p"}: begin named = C_STORE; named_op = OP_PREPEND; end
        {"n", "o", "i", "s", "r", "e", "v"}: named = C_VERSION;
        default: ;
      endcase
      default: ;
    endcase
    if (!piece.ends) named = C_UNKNOWN;
  end
  always_comb begin
    case (piece.data)
      {"l", "a", "_", "h", "s", "u", "l", "f"}: begins = LONG_FLUSH;
      {"t", "i", "s", "o", "b", "r", "e", "v"}: begins = LONG_VERBOSITY;
      {"n", "w", "o", "d", "t", "u", "h", "s"}, {"e", "r", "o", "t", "s", "t", "x", "e"}: begins = LONG_WHOLE;
      {"m", "i", "t", "g", "u", "b", "e", "d"}: begins = LONG_DEBUGTIME;
      {"w", "a", "r", "c", "_", "u", "r", "l"}: begins = LONG_CRAWLER;
      {"_", "h", "s", "e", "r", "f", "e", "r"}: begins = LONG_CERTS;
      {"e", "m", "_", "e", "h", "c", "a", "c"}: begins = LONG_MEMLIMIT;
      default: begins = LONG_NONE;
    endcase
    completes = '0;
    completes[LONG_FLUSH] = piece.len == 4'd1 && piece.data[7:0] == "l";
    completes[LONG_VERBOSITY] = piece.len == 4'd1 && piece.data[7:0] == "y";
    completes[LONG_WHOLE] = piece.len == 4'd0;
    completes[LONG_DEBUGTIME] = piece.len == 4'd1 && piece.data[7:0] == "e";
    completes[LONG_CRAWLER] = piece.len == 4'd3 && piece.data[23:0] == {"r", "e", "l"};
    completes[LONG_CERTS] = piece.len == 4'd5 && piece.data[39:0] == {"s", "t", "r", "e", "c"};
    completes[LONG_MEMLIMIT] = piece.len == 4'd6 && piece.data[47:0] == {"t", "i", "m", "i", "l", "m"};
    if (!piece.ends) completes = '0;
  end
endmodule
