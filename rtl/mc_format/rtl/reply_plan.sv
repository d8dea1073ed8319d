// SPDX-License-Identifier: Apache-2.0
//
// What a result asks for: the pieces of its reply, its text, status and sizes. Combinational.
module reply_plan
  import wc_pkg::*;
(
    input  result_t result,
    output task_t   plan
);
  text_t text_next;
  logic [7:0] status_next;
  logic silent, has_text, key_next, hit_next, extras_next;
  always_comb begin
    text_next = T_END;
    status_next = 8'h00;
    has_text = 1'b1;
    if (!result.bin) begin
      case (result.outcome)
        OUT_STORED: text_next = T_STORED;
        OUT_NOT_STORED: text_next = T_NOT_STORED;
        OUT_EXISTS: text_next = T_EXISTS;
        OUT_NOT_FOUND: text_next = T_NOT_FOUND;
        OUT_DELETED: text_next = T_DELETED;
        OUT_TOUCHED: text_next = T_TOUCHED;
        OUT_OK: text_next = T_OK;
        OUT_VERSION: text_next = T_VERSION;
        OUT_NOOP: text_next = T_MN;
        OUT_ERROR:
        case (result.err)
          ERR_UNKNOWN: text_next = T_ERROR;
          ERR_DATA: text_next = T_DATA;
          ERR_EXPTIME: text_next = T_EXPTIME;
          ERR_DELTA: text_next = T_DELTA;
          ERR_NONNUM: text_next = T_NONNUM;
          ERR_UNSUPPORTED: text_next = T_UNSUPPORTED;
          ERR_TOOLARGE: text_next = T_TOOLARGE;
          default: text_next = T_FORMAT;
        endcase
        OUT_MISS: has_text = result.last_key;
        OUT_NONE, OUT_HIT, OUT_NUMBER: has_text = 1'b0;
        default: ;
      endcase
    end else begin
      case (result.outcome)
        OUT_MISS, OUT_NOT_FOUND: begin
          status_next = 8'h01;
          text_next = B_NOT_FOUND;
          has_text = !(result.outcome == OUT_MISS && result.ret_key);
        end
        OUT_EXISTS: begin
          status_next = 8'h02;
          text_next = B_EXISTS;
        end
        OUT_NOT_STORED:
        case (result.op)
          OP_ADD: begin
            status_next = 8'h02;
            text_next = B_EXISTS;
          end
          OP_REPLACE: begin
            status_next = 8'h01;
            text_next = B_NOT_FOUND;
          end
          default: begin
            status_next = 8'h05;
            text_next = B_NOT_STORED;
          end
        endcase
        OUT_VERSION: text_next = B_VERSION;
        OUT_ERROR:
        case (result.err)
          ERR_UNKNOWN, ERR_UNSUPPORTED: begin
            status_next = 8'h81;
            text_next = B_UNKNOWN;
          end
          ERR_TOOLARGE: begin
            status_next = 8'h03;
            text_next = B_TOOLARGE;
          end
          ERR_NONNUM: begin
            status_next = 8'h06;
            text_next = B_NONNUM;
          end
          default: begin
            status_next = 8'h04;
            text_next = B_INVALID;
          end
        endcase
        default: has_text = 1'b0;
      endcase
    end
    silent = 1'b0;
    if (result.outcome == OUT_NONE) silent = 1'b1;
    else if (!result.bin) silent = result.quiet;
    else if (result.quiet) begin
      case (result.outcome)
        OUT_MISS, OUT_STORED, OUT_DELETED, OUT_NUMBER, OUT_OK, OUT_NOOP: silent = 1'b1;
        default: ;
      endcase
    end
  end

  assign hit_next = result.outcome == OUT_HIT;
  assign extras_next = hit_next || result.outcome == OUT_TOUCHED;
  assign key_next = result.ret_key && (hit_next || result.outcome == OUT_MISS);
  function automatic logic [11:0] upper_digits(logic [6:0] bits);
    logic [15:0] digits;
    digits = with_bits({13'd0, bits[6:4]}, bits[3:1], 3);
    digits = with_bits(digits, {2'd0, bits[0]}, 1);
    upper_digits = digits[11:0];
  endfunction
  function automatic logic [2:0] class_of(logic [63:0] value);
    class_of[2] = value[63:32] == '0;
    class_of[1] = value[63:12] == '0;
    class_of[0] = value[63:4] == '0 && (!value[3] || value[2:1] == 2'd0);
  endfunction
  always_comb begin
    plan.result = result;
    if (result.outcome != OUT_NUMBER) plan.result.number = {32'd0, result.flags};
    plan.number_below = class_of(plan.result.number);
    plan.cas_below = class_of(result.cas);
    plan.text = text_next;
    plan.status = status_next;
    plan.text_follows = !silent && has_text;
    plan.has_extras = extras_next;
    plan.has_cas = extras_next || result.outcome == OUT_STORED || result.outcome == OUT_NUMBER;
    plan.shows_key = key_next;
    plan.bare = hit_next ? !key_next && result.vlen == 12'd0 : !key_next && !has_text && result.outcome != OUT_NUMBER;
    plan.last_key_word = result.kbeats == 6'd1;
    plan.last_value_word = result.vbeats == 9'd1;
    plan.body = (hit_next ? {1'b0, result.vlen} : {9'd0, result.outcome == OUT_NUMBER, 3'd0}) +
                  ((key_next ? {5'd0, result.klen} : 13'd0) + {10'd0, extras_next, 2'b00});
    plan.vlen_digits = upper_digits(result.vlen[11:5]);
    if (silent) plan.first = result.kbeats == 6'd0 ? F_SKIP : F_DROP;
    else if (result.bin) plan.first = F_HEAD;
    else if (hit_next) plan.first = F_FIRST;
    else if (result.kbeats != 6'd0) plan.first = F_DROP;
    else if (result.outcome == OUT_NUMBER) plan.first = F_NUMBER;
    else plan.first = has_text ? F_TEXT : F_SKIP;
  end
endmodule
