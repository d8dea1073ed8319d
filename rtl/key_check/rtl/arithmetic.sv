// SPDX-License-Identifier: Apache-2.0
//
// What incr and decr make of a value: a digit a cycle in, four bits a cycle out. The value is read as by
// src/base/number.h: blanks, a sign, digits, then the end, a blank or a zero byte.
module arithmetic (
    input  logic        clk,
    input  logic        begins,       // before all else
    input  logic        initial_only, // with begins: the number is `initial_value`
    input  logic [63:0] initial_value,
    input  logic [11:0] vlen,         // of the old value
    input  logic        decrements,
    input  logic [63:0] delta,
    // The old value; until `summed`, or not at all.
    input  logic        reads,
    input  logic        word_valid,
    input  logic        word_none,    // no word is left
    input  logic [63:0] word,
    output logic        take,
    output logic        summed,
    output logic        bad,          // after it: there is no number
    output logic [63:0] number,
    // Its digits; `converts` is the cycle before `digits_come`, which lasts until `aligned`. What `converts` begins it begins in
    // the cycle after, as it is known late; and the size is found out in a cycle of its own.
    input  logic        converts,
    input  logic        digits_come,
    output logic        aligned,
    output logic [11:0] size,         // of the new value, which does not get shorter
    output logic [191:0] text         // its first 24 bytes: digits, then blanks
);
  typedef enum logic [2:0] {N_READ, N_SIGN, N_SUM, N_DIGITS, N_ALIGN, N_DONE} state_t;
  state_t state;

  logic done, any, has_sign, negative;
  logic [63:0] beat;
  logic [3:0] beat_bytes;    // of it that are left
  logic [11:0] left;         // bytes of the value that are left, those of `beat` included
  logic [67:0] wide;
  assign wide = {1'b0, number, 3'b000} + {3'b000, number, 1'b0} + {64'd0, beat[3:0]};
  wire is_digit = beat[7:0] >= "0" && beat[7:0] <= "9";
  wire is_blank = beat[7:0] == 8'h20 || (beat[7:0] >= 8'h09 && beat[7:0] <= 8'h0d);
  logic [63:0] with_sign;
  assign with_sign = negative ? ~number + 64'd1 : number;
  logic reading;
  assign reading = reads && state == N_READ;
  assign take = reading && beat_bytes == 4'd0 && !word_none;
  assign summed = reads && state == N_SUM;

  logic [79:0] bcd, bcd_next;
  logic [63:0] bits;
  logic [4:0] step, count;   // count: digits, after N_ALIGN, which shifts the first one to the top
  assign bcd_next = wc_pkg::doubled(wc_pkg::doubled(wc_pkg::doubled(wc_pkg::doubled(bcd, bits[63]), bits[62]), bits[61]), bits[60]);
  logic begins_digits;
  assign aligned = digits_come && state == N_DONE;
  always_ff @(posedge clk) begin
    begins_digits <= converts;
    size <= left > {7'd0, count} ? left : {7'd0, count};
  end
  always_comb begin
    for (int i = 0; i < 24; i++) text[8*i+:8] = (i < 20 && 5'(i) < count) ? {4'h3, bcd[4*((i<20)?19-i:0)+:4]} : 8'h20;
  end

  always_ff @(posedge clk) begin
    if (begins) begin
      state <= N_READ;
      number <= initial_only ? initial_value : '0;
      left <= initial_only ? '0 : vlen;
      bad <= 1'b0;
      done <= 1'b0;
      any <= 1'b0;
      has_sign <= 1'b0;
      negative <= 1'b0;
      beat_bytes <= '0;
      bcd <= '0;
      step <= '0;
    end else if (begins_digits) begin
      state <= N_DIGITS;
      bits <= number;
    end else begin
      case (state)
        N_READ:
        if (reads) begin
          if (take && word_valid) begin
            beat <= word;
            beat_bytes <= left > 12'd8 ? 4'd8 : left[3:0];
          end else if (beat_bytes != 4'd0 && !done && !bad) begin
            beat <= beat >> 8;
            beat_bytes <= beat_bytes - 4'd1;
            left <= left - 12'd1;
            if (is_digit) begin
              number <= wide[63:0];
              any <= 1'b1;
              if (wide[67:64] != 4'd0) bad <= 1'b1;
            end else if (any) begin
              if (!is_blank && beat[7:0] != 8'h00) bad <= 1'b1;
              done <= 1'b1;
            end else if (!has_sign && (beat[7:0] == "-" || beat[7:0] == "+")) begin
              has_sign <= 1'b1;
              negative <= beat[7:0] == "-";
            end else if (!is_blank || has_sign) begin
              bad <= 1'b1;
            end
          end
          if (done || bad || left == 12'd0) begin
            beat_bytes <= '0;
            left <= vlen;
            state <= N_SIGN;
          end
        end
        N_SIGN: begin
          number <= with_sign;
          if (!any || (negative && with_sign[63])) bad <= 1'b1;
          state <= N_SUM;
        end
        N_SUM: begin
          if (reads) number <= !decrements ? number + delta : number > delta ? number - delta : 64'd0;
        end
        N_DIGITS: begin
          bcd <= bcd_next;
          bits <= bits << 4;
          step <= step + 5'd1;
          count <= 5'd20;
          if (step == 5'd15) state <= N_ALIGN;
        end
        N_ALIGN:
        if (bcd[79:76] == 4'd0 && count != 5'd1) begin
          bcd <= bcd << 4;
          count <= count - 5'd1;
        end else begin
          state <= N_DONE;
        end
        default: ;
      endcase
    end
  end
endmodule
